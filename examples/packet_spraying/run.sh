#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which strategy needs packets sprayed? As comma-separated values, relative to ideal spraying, first the load of the
# busiest link between leaves and spines; then, with one of the uplinks of leaf 0 lost at half of the time and known
# to be lost 10 us later, the finish of the last flow (colour_again: all are then coloured again). Of ecmp the median and
# the largest of the seeds. Arguments: number of seeds; default 20. A folder for the plots permutation.svg and lost_uplink.svg;
# default none. Shapes, LEAVES,SPINES,HOSTS; default those of the README.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
seeds=${1:-20}
plots=$2
shapes=${3:-16,16,16 16,8,8 32,8,32 8,8,6 12,8,10}
lossy_shapes=${3:-16,16,16 16,8,8 8,8,6}
faults=$(mktemp)
table=$(mktemp)
trap 'rm -f "$faults" "$table"' EXIT

# plot NAME TITLE: bars of the table's permutations, by shape; then the table is empty.
plot() {
  if [ -n "$plots" ]; then
    mkdir -p "$plots"
    awk -F, -v OFS=, 'NR == 1 || $4 == "permutation" {
        $1 = NR == 1 ? "leaves x spines x hosts" : $1 "x" $2 "x" $3; line = $1
        for (f = 5; f <= NF; ++f) line = line OFS $f
        print line }' "$table" |
      "$orrery" plot bars - --title "$2" --y-label "relative to ideal spraying" > "$plots/$1.svg"
  fi
  : > "$table"
}

# busiest TOPOLOGY TRAFFIC ROUTING SEED: bytes on the busiest link between switches.
busiest() {
  $orrery flow --topology "$1" --traffic $2 --routing "$3" --seed "$4" --bytes 1MB --json |
    awk -F': ' '
      /"name"/ { between = $2 ~ /(leaf|spine)[0-9]+->(leaf|spine)/ }
      /"load"/ && between { value = $2 + 0; if (value > most) most = value }
      END { printf "%.9g\n", most }'
}

echo "leaves,spines,hosts,traffic,ecmp_median,ecmp_max,greedy,adaptive,source_rule,pair_split,colour" | tee "$table"
for shape in $shapes; do
  leaves=${shape%%,*}; rest=${shape#*,}; spines=${rest%%,*}; hosts=${rest#*,}
  topology="leaf_spine:leaves=$leaves,spines=$spines,hosts=$hosts"
  exchange=$([ $((leaves * hosts)) -le 256 ] && echo all_to_all || true)  # of 1,024 hosts a million flows
  for traffic in permutation "ring --stride $hosts" shift $exchange incast; do
    ideal=$(busiest "$topology" "$traffic" spray 0)
    ecmp=$(seed=0; while [ $seed -lt "$seeds" ]; do
      busiest "$topology" "$traffic" ecmp $seed; seed=$((seed + 1)); done |
      sort -g | awk -v ideal="$ideal" '
        { load[NR] = $1 } END { printf "%.3f,%.3f", load[int((NR + 1) / 2)] / ideal, load[NR] / ideal }')
    line="$leaves,$spines,$hosts,$(echo "$traffic" | cut -d' ' -f1),$ecmp"
    for routing in greedy adaptive source_rule pair_split colour; do
      line="$line,$(busiest "$topology" "$traffic" $routing 0 |
        awk -v ideal="$ideal" '{ printf "%.3f", $1 / ideal }')"
    done
    echo "$line" | tee -a "$table"
  done
done
plot permutation "Busiest link, permutations"

# finish TOPOLOGY TRAFFIC ROUTING SEED [FAULTS]: of the last flow, seconds.
finish() {
  $orrery flow --topology "$1" --traffic $2 --routing "$3" --seed "$4" --bytes 1MB --json ${5:+--faults "$5"} |
    awk -F': ' '/"end_s"/ && !n++ { print $2 + 0 }'
}

echo
echo "leaves,spines,hosts,traffic with a lost uplink,spray,ecmp_median,ecmp_max,greedy,pair_split,colour,colour_again" |
  tee "$table"
for shape in $lossy_shapes; do
  leaves=${shape%%,*}; rest=${shape#*,}; spines=${rest%%,*}; hosts=${rest#*,}
  topology="leaf_spine:leaves=$leaves,spines=$spines,hosts=$hosts"
  for traffic in permutation shift; do
    healthy=$(finish "$topology" $traffic spray 0)
    cat > "$faults" <<END
reroute_after: 10 us
faults: [{kind: link, links: [leaf0--spine0], bandwidth_share: 0, at: $(echo "$healthy" | awk '{ print $1 * 5e5 }') us}]
END
    line="$leaves,$spines,$hosts,$traffic"
    relative() {
      awk -v healthy="$healthy" '{ printf "%.3f", $1 / healthy }'
    }
    line="$line,$(finish "$topology" $traffic spray 0 "$faults" | relative)"
    ecmp=$(seed=0; while [ $seed -lt "$seeds" ]; do
      finish "$topology" $traffic ecmp $seed "$faults"; seed=$((seed + 1)); done | sort -g |
      awk -v healthy="$healthy" '
        { last[NR] = $1 } END { printf "%.3f,%.3f", last[int((NR + 1) / 2)] / healthy, last[NR] / healthy }')
    line="$line,$ecmp"
    for routing in greedy pair_split colour; do
      line="$line,$(finish "$topology" $traffic $routing 0 "$faults" | relative)"
    done
    echo "recolour: true" >> "$faults"
    echo "$line,$(finish "$topology" $traffic colour 0 "$faults" | relative)" | tee -a "$table"
  done
done
plot lost_uplink "Last finish with a lost uplink, permutations"
