#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which strategy needs packets sprayed? Load of the busiest link between leaves and spines, relative to ideal
# spraying, as comma-separated values. Of ecmp the median and the largest of the seeds. Arguments: number of
# seeds; default 20.
set -e
orrery=${ORRERY:-orrery}
seeds=${1:-20}

# busiest TOPOLOGY TRAFFIC ROUTING SEED: bytes on the busiest link between switches.
busiest() {
  $orrery flow --topology "$1" --traffic $2 --routing "$3" --seed "$4" --bytes 1MB --json |
    awk -F': ' '
      /"name"/ { between = $2 ~ /(leaf|spine)[0-9]+->(leaf|spine)/ }
      /"load"/ && between { value = $2 + 0; if (value > most) most = value }
      END { printf "%.9g\n", most }'
}

echo "leaves,spines,hosts,traffic,ecmp_median,ecmp_max,greedy,adaptive,source_rule,pair_split,colour"
for shape in 16,16,16 16,8,8 32,8,32 8,8,6 12,8,10; do
  leaves=${shape%%,*}; rest=${shape#*,}; spines=${rest%%,*}; hosts=${rest#*,}
  topology="leaf_spine:leaves=$leaves,spines=$spines,hosts=$hosts"
  for traffic in permutation "ring --stride $hosts" shift incast; do
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
    echo "$line"
  done
done
