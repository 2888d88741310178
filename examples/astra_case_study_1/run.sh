#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ASTRA-sim 2.0, case study 1: conventional networks beside wafers, 512 NPUs, an all-reduce of 1 GiB.
# run.sh [FOLDER] writes its chart there.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
charts=${1:-$scratch}
mkdir -p "$charts"
. "$here/systems.sh"

# table TITLE: a line per system "name|topology|npus|bandwidth|latency|algorithms|GB/s of an NPU".
# The least time is 2 * 511/512 GiB over the bandwidth of an NPU.
table() {
  echo "# $1"
  printf '%-10s %-24s %7s %9s %9s %9s %11s\n' \
    system shape GB/s "astra ms" "native ms" "of bound" "x W-1D 600"
  while IFS='|' read -r name topology npus bandwidth latency algorithms total; do
    inputs "$topology" "$npus" "$bandwidth" "$latency" "$algorithms"
    shape="$(echo "$npus" | sed 's/, /x/g') $(echo "$bandwidth" | sed 's/, /_/g')"
    both | awk -v name="$name" -v shape="$shape" -v total="$total" '
      { bound = 2 * 511 / 512 / total * 1e3
        printf "%s|%s|%s|%.3f|%.3f|%.3f\n", name, shape, total, $1 / 1e6, $2 / 1e6, bound * 1e6 / $1 }'
  done >"$scratch/rows"
  awk -F'|' 'NR == FNR { if ($1 == "W-1D 600") best = $4; next }
             { printf "%-10s %-24s %7d %9.3f %9.3f %9.3f %11.2f\n", $1, $2, $3, $4, $5, $6, $4 / best }' \
    "$scratch/rows" "$scratch/rows"
}

memory=100000
table "ideal: no latency, reductions for nothing, FullyConnected as a Switch with rings" <<'SYSTEMS'
W-1D 350|Switch|512|350|0|halvingDoubling|350
W-1D 500|Switch|512|500|0|halvingDoubling|500
W-1D 600|Switch|512|600|0|halvingDoubling|600
W-2D|Switch, Switch|32, 16|250, 250|0|halvingDoubling, halvingDoubling|500
Conv-3D|Ring, Switch, Switch|16, 8, 4|200, 100, 50|0|ring, ring, halvingDoubling|350
Conv-4D|Ring, Switch, Ring, Switch|2, 8, 8, 4|250, 200, 100, 50|0|ring, ring, ring, halvingDoubling|600
SYSTEMS
{
  echo 'system,"ASTRA-sim semantics",native'
  awk -F'|' '{ printf "%s,%s,%s\n", $1, $4, $5 }' "$scratch/rows"
} >"$scratch/chart.csv"
"$orrery" plot bars "$scratch/chart.csv" --title "All-reduce of 1 GiB over 512 NPUs" \
  --y-label milliseconds >"$charts/all_reduce.svg"

echo
memory=1600
table "links: 500 ns a hop, reductions at 1600 GB/s, FullyConnected with 7 links of its figure" <<'SYSTEMS'
W-1D 350|Switch|512|350|500|halvingDoubling|350
W-1D 500|Switch|512|500|500|halvingDoubling|500
W-1D 600|Switch|512|600|500|halvingDoubling|600
W-2D|Switch, Switch|32, 16|250, 250|500|halvingDoubling, halvingDoubling|500
Conv-3D|Ring, FullyConnected, Switch|16, 8, 4|200, 100, 50|500|ring, direct, halvingDoubling|950
Conv-4D|Ring, FullyConnected, Ring, Switch|2, 8, 8, 4|250, 200, 100, 50|500|ring, direct, ring, halvingDoubling|1800
SYSTEMS
