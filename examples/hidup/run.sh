#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# HiDup's experiments: each a study, its rows as CSV, a table and a figure. Arguments: which of them; none: all.
# OUT: where NAME.csv and NAME.svg go; default: a new folder.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
orrery=$(realpath "$orrery")
out=$(realpath "${OUT:-$(mktemp -d)}")
cd "$(dirname "$0")"

# Seconds by strategy: a column for each.
by_strategy() {
  local by="max(CASE WHEN \"spmd.fixed\"" column=$1
  echo "$by = 'none' THEN $column END) AS hidup, $by = 'data_parallel' THEN $column END) AS data_parallel,
    $by = 'fsdp' THEN $column END) AS fsdp, $by = 'expert_parallel' THEN $column END) AS expert_parallel,
    $by = 'expert_parallel_fsdp' THEN $column END) AS expert_parallel_fsdp"
}
simulated=$(by_strategy 'round(simulated_s, 4)')
estimated=$(by_strategy 'round(optimum_s, 4)')

# study NAME TABLE PLOT KIND TITLE [FLAGS]: SQL of the table and of the figure, which has a first column of names.
study() {
  echo "# $1"
  rm -f "$out/$1.db"
  "$orrery" sweep "$1.yaml" --store "$out/$1.db" --csv "$out/$1.csv" | sed "s|$out/||"
  "$orrery" query "$out/$1.db" "$2"
  "$orrery" query "$out/$1.db" "$3" --csv | "$orrery" plot "$4" - --title "$5" "${@:6}" >"$out/$1.svg"
}

strategies() {
  local table="SELECT \"spmd.graph\" AS model, \"spmd.profile\" AS network, \"spmd.overlap\" AS overlap, $estimated
    FROM rows GROUP BY 1, 2, 3 ORDER BY min(point)"
  study strategies "$table" "SELECT \"spmd.profile\" AS network, $estimated FROM rows
    WHERE \"spmd.graph\" = 'Rmoe' AND \"spmd.overlap\" = 'forward' GROUP BY 1 ORDER BY min(point)" bars 'Published cost, Rmoe'
}
vi_b_scale() {
  study vi_b_scale "SELECT \"spmd.graph\" AS model, \"spmd.devices\" AS devices, $simulated FROM rows
    GROUP BY 1, 2 ORDER BY min(point)" "SELECT \"spmd.devices\" AS devices, $simulated FROM rows
    WHERE \"spmd.graph\" = 'Rmoe' GROUP BY 1 ORDER BY 1" lines 'Rmoe, 9.71 Gbit/s' --y-label 'step (s)'
}
vi_c_one_machine() {
  study vi_c_one_machine "SELECT \"spmd.graph\" AS model, \"spmd.overlap\" AS overlap, $simulated FROM rows
    GROUP BY 1, 2 ORDER BY min(point)" "SELECT \"spmd.graph\" || ' ' || \"spmd.overlap\" AS model, $simulated FROM rows
    GROUP BY 1 ORDER BY min(point)" bars '8 V100, one machine' --y-label 'step (s)'
}
vi_d_bandwidth() {
  local gbit="4 * CAST(replace(\"machine.network.ethernet.bandwidth\", ' Gbit/s', '') AS REAL)"
  study vi_d_bandwidth "SELECT \"spmd.graph\" AS model, $gbit AS gbit, $simulated FROM rows GROUP BY 1, 2
    ORDER BY min(point)" "SELECT $gbit AS gbit, $simulated FROM rows WHERE \"spmd.graph\" = 'Rmoe' GROUP BY 1
    ORDER BY 1" lines 'Rmoe, 2 x 4 V100' --x-label 'Gbit/s a machine' --y-label 'step (s)'
}
vi_e_noise() {
  study vi_e_noise "SELECT \"spmd.profile\" AS network, \"spmd.noise\" AS noise, round(avg(optimum_s), 4) AS mean,
    round(max(optimum_s), 4) AS worst FROM rows GROUP BY 1, 2 ORDER BY min(point)" \
    "SELECT \"spmd.noise\" AS noise, avg(CASE WHEN \"spmd.profile\" = '64c8m' THEN optimum_s END) AS \"64c8m\",
    avg(CASE WHEN \"spmd.profile\" = '2m_10g' THEN optimum_s END) AS \"2m_10g\" FROM rows GROUP BY 1 ORDER BY 1" \
    lines 'Rmoe, wrong inputs' --y-label 'true cost (s)'
}
vi_f_search_time() {
  local rows='SELECT "spmd.layers" AS layers, max(CASE WHEN "spmd.devices" = 8 THEN search_s END) AS "8 devices",
    max(CASE WHEN "spmd.devices" = 64 THEN search_s END) AS "64 devices",
    max(CASE WHEN "spmd.devices" = 4096 THEN search_s END) AS "4096 devices" FROM rows GROUP BY 1 ORDER BY 1'
  study vi_f_search_time "$rows" "$rows" lines 'Rmoe, the search' --log-x --y-label 'seconds'
}
traces() {
  study traces "SELECT \"spmd.devices\" AS devices, \"spmd.overlap\" AS overlap, \"spmd.fixed\" AS strategy,
    round(simulated_s, 4) AS step_s FROM rows ORDER BY point" "SELECT \"spmd.devices\" || ' ' || \"spmd.fixed\" AS run,
    simulated_s AS step FROM rows WHERE \"spmd.overlap\" = 'both' ORDER BY point" bars 'Six layers of 1024' \
    --y-label 'step (s)'
}

for name in ${*:-strategies vi_b_scale vi_c_one_machine vi_d_bandwidth vi_e_noise vi_f_search_time traces}; do
  $name
done
echo "# tables and figures: $out"
