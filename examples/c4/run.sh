#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Paths planned per job (C4P) beside hashed ones: bus bandwidth of all-reduces between pairs of nodes, model beside
# published, as comma-separated values. Arguments: number of seeds of the hashes; default 5.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
seeds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Two pods of 8 nodes with 8 NICs of two ports; a leaf for each rail and side (left, right) of a pod: 8 ports down, UP up.
# Ports are hosts: port of (pod, rail, side, node) = 128 pod + 8 (2 rail + side) + node.
network() {
  echo "clos:down=8x16x2,up=1x$1x16,bandwidth=181Gbit/s,latency=1us"
}

# flows JOBS QPS SIDES SEED: job j, which begins a nanosecond after job j-1, joins node j of both pods; every NIC sends
# 400 MB to its rail's NIC over QPS connections. SIDES hashed: any port at either end; matched: left to left, right to
# right (C4P).
flows() {
  awk -v jobs="$1" -v qps="$2" -v sides="$3" -v seed="$4" 'BEGIN {
    srand(seed); print "source,target,bytes,start_s"
    for (j = 0; j < jobs; ++j) for (k = 0; k < 8; ++k) for (d = 0; d < 2; ++d) for (q = 0; q < qps; ++q) {
      a = b = q % 2
      if (sides == "hashed") { a = int(2 * rand()); b = int(2 * rand()) }
      printf "%d,%d,%d,%.9f\n", 128 * d + 8 * (2 * k + a) + j, 128 * (1 - d) + 8 * (2 * k + b) + j, 400e6 / qps, j * 1e-9
    } }'
}

# rates QPS: from the JSON of a run the bus bandwidth of each job in Gbit/s, slowest first.
rates() {
  awk -F': ' -v qps="$1" '/"finish_s"/ {
      job = int(n / (16 * qps)); n += 1; if ($2 + 0 > last[job]) last[job] = $2 + 0
    } END { for (job in last) printf "%.1f\n", 400e6 * 8 / last[job] / 1e9 }' | sort -n
}

# run JOBS QPS SIDES UP ROUTING SEED [FAULTS]
run() {
  flows "$1" "$2" "$3" "$6" > "$work/flows.csv"
  $orrery flow --topology "$(network "$4")" --flows "$work/flows.csv" --routing "$5" --seed "$6" --json \
    ${7:+--faults "$7"} | rates "$2"
}

# hashed JOBS QPS UP [SIDES]: over the seeds.
hashed() {
  seed=0
  while [ $seed -lt "$seeds" ]; do
    run "$1" "$2" "${4:-hashed}" "$3" ecmp $seed; seed=$((seed + 1))
  done | sort -n
}

range() {
  awk '{ rate[NR] = $1 } END { printf "%s,%s,%s", rate[1], rate[int((NR + 1) / 2)], rate[NR] }'
}

# row NAME PUBLISHED (number to compare the median with, or -) ORIGIN < rates
row() {
  values=$(range)
  echo "$1,$values,$2,$(echo "$values" | awk -F, -v published="$2" '
    published ~ /^[0-9.]+$/ { printf "%+.1f %%", 100 * ($2 / published - 1) }'),$3"
}

cat > "$work/uplink.yaml" <<END
reroute_after: 0
faults:
  - {kind: link, links: [edge0->aggregation0], bandwidth_share: 0, at: 0 s}
END

# samples MODEL BATCH TP PP DP GBIT: per second on 128 H800, NICs of whose nodes move GBIT Gbit/s of a collective.
samples() {
  "$orrery" show machine dgx-h800 --yaml |
    sed "s|bandwidth: 400 Gbit/s|bandwidth: $(awk "BEGIN { print $6 / 0.97 }") Gbit/s|" > "$work/h800.yaml"
  "$orrery" simulate --model "$1" --machine "$work/h800.yaml" --devices 128 --batch "$2" --tp "$3" --pp "$4" --dp "$5" --json |
    awk -F': ' -v batch="$2" '/"step_time_s"/ && !n++ { printf "%.2f", batch / $2 }'
}

# trains MODEL BATCH TP PP DP PUBLISHED-BEFORE PUBLISHED-AFTER
trains() {
  before=$(samples "$1" "$2" "$3" "$4" "$5" 240)
  after=$(samples "$1" "$2" "$3" "$4" "$5" 360)
  echo "$1; tp $3 pp $4 dp $5; batch $2,$before,$after,$(awk "BEGIN { printf \"%+.1f %%\", 100 * ($after / $before - 1) }"),$6,$7,recalled"
}

echo "case,slowest,median,fastest,published,error of the median,origin"
# One job: ports, then uplinks.
hashed 1 2 8 | row "one job; hashed ports; hashed uplinks" "below 240" recalled
hashed 1 2 8 matched | row "one job; matched ports; hashed uplinks" - recalled
run 1 2 matched 8 greedy 0 | row "one job; matched ports; uplinks by job (C4P)" 360 recalled
# Eight jobs: each step of C4P on top of the one before.
hashed 8 2 8 | row "8 jobs; hashed; 2 connections" 171.93-263.27 recalled
hashed 8 16 8 | row "8 jobs; hashed; 16 connections" 171.93-263.27 recalled
hashed 8 16 8 matched | row "8 jobs; matched ports; hashed uplinks; 16 connections" - recalled
run 8 2 hashed 8 greedy 0 | row "8 jobs; hashed ports; uplinks by job" - recalled
run 8 2 matched 8 greedy 0 | row "8 jobs; matched ports; uplinks by job (C4P)" 353.86-360.57 recalled
run 8 2 matched 8 colour 0 | row "8 jobs; matched ports; all uplinks at once" 353.86-360.57 recalled
hashed 8 16 4 | row "2:1; 8 jobs; hashed; 16 connections" - recalled
run 8 2 matched 4 greedy 0 | row "2:1; 8 jobs; C4P (published: 65.55 % over hashed)" - recalled
# An uplink less.
run 8 2 matched 8 colour 0 "$work/uplink.yaml" | sed -n 1p | row "1 of 8 uplinks down; static; slowest job" 185.76 recalled
(echo "recolour: true"; cat "$work/uplink.yaml") > "$work/recolour.yaml"
run 8 2 matched 8 colour 0 "$work/recolour.yaml" | sed -n 1p | row "1 of 8 uplinks down; dynamic; slowest job" 301.46 recalled

echo
echo "training on 128 H800 (samples per second),240 Gbit/s,360 Gbit/s,gain,published,published gain,origin"
trains gpt-22b 64 8 1 16 "74.82 -> 86.76" "+15.95 %"
trains gpt-22b 128 8 1 16 "74.82 -> 86.76" "+15.95 %"
trains llama-2-7b 128 1 1 128 "156.59 -> 178.65" "+14.1 %"
trains gpt3-175b 32 8 8 2 - "about none"
