#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ASTRA-sim 2.0, case study 2: Themis on the networks of case study 1. With equal bandwidth per NPU
# an all-reduce takes nearly the same time whatever the dimensions. run.sh [FOLDER] writes its chart
# there.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")/../astra_case_study_1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
charts=${1:-$scratch}
mkdir -p "$charts"
. "$here/systems.sh"
memory=100000
themis=' "inter-dimension-scheduling": "themis", "intra-dimension-scheduling": "SCF",'

# Lines "name|GB/s of an NPU|of all its links|topology|npus|bandwidth|algorithms". Rings of more than
# two have a link each way; ASTRA-sim's algorithms use one of them, the event loop's both. The bound
# is 2 * 511/512 GiB over all links.
printf '%-10s %6s %12s %12s %12s %12s %12s %9s\n' \
  system GB/s "natural ms" "themis ms" "W-1D ms" "all links" "native ms" "x bound"
while IFS='|' read -r name total links topology npus bandwidth algorithms; do
  inputs "$topology" "$npus" "$bandwidth" 0 "$algorithms"
  natural=$(both)
  inputs "$topology" "$npus" "$bandwidth" 0 "$algorithms" "$themis"
  balanced=$(both)
  inputs Switch 512 "$total" 0 halvingDoubling
  flat=$(both)
  echo "$natural $balanced $flat" | awk -v name="$name" -v total="$total" -v links="$links" '
    { bound = 2 * 511 / 512 / links * 1e3
      printf "%s|%s|%.3f|%.3f|%.3f|%s|%.3f|%.3f\n", name, total, $1 / 1e6, $3 / 1e6, $5 / 1e6, links,
        $4 / 1e6, $4 / 1e6 / bound }'
done >"$scratch/rows" <<'SYSTEMS'
Conv-3D|350|550|Ring, Switch, Switch|16, 8, 4|200, 100, 50|ring, ring, halvingDoubling
W-2D|500|500|Switch, Switch|32, 16|250, 250|halvingDoubling, halvingDoubling
Conv-4D|600|700|Ring, Switch, Ring, Switch|2, 8, 8, 4|250, 200, 100, 50|ring, ring, ring, halvingDoubling
W-1D|350|350|Switch|512|350|halvingDoubling
W-1D|500|500|Switch|512|500|halvingDoubling
W-1D|600|600|Switch|512|600|halvingDoubling
SYSTEMS
awk -F'|' '{ printf "%-10s %6d %12.3f %12.3f %12.3f %12d %12.3f %9.3f\n", $1, $2, $3, $4, $5, $6, $7, $8 }' \
  "$scratch/rows"
{
  echo 'system,"natural order","Themis, ASTRA-sim","W-1D of equal bandwidth","Themis, native (rings both ways)"'
  awk -F'|' 'NR <= 3 { printf "%s (%s GB/s),%s,%s,%s,%s\n", $1, $2, $3, $4, $5, $7 }' "$scratch/rows"
} >"$scratch/chart.csv"
"$orrery" plot bars "$scratch/chart.csv" --title "All-reduce of 1 GiB over 512 NPUs" \
  --y-label milliseconds >"$charts/themis.svg"

# The same on a fully-connected dimension with its own links: 7 of 100/7 GB/s. ASTRA-sim's Themis
# takes one of them for the whole dimension.
echo
printf '%-10s %6s %12s %12s %12s\n' "links" GB/s "natural ms" "themis ms" "native ms"
while IFS='|' read -r name total topology npus bandwidth algorithms; do
  inputs "$topology" "$npus" "$bandwidth" 0 "$algorithms"
  natural=$(both)
  inputs "$topology" "$npus" "$bandwidth" 0 "$algorithms" "$themis"
  echo "$natural $(both)" | awk -v name="$name" -v total="$total" '
    { printf "%-10s %6d %12.3f %12.3f %12.3f\n", name, total, $1 / 1e6, $3 / 1e6, $4 / 1e6 }'
done <<'SYSTEMS'
Conv-3D|350|Ring, FullyConnected, Switch|16, 8, 4|200, 14.2857, 50|ring, direct, halvingDoubling
Conv-4D|600|Ring, FullyConnected, Ring, Switch|2, 8, 8, 4|250, 28.5714, 100, 50|ring, direct, ring, halvingDoubling
SYSTEMS
