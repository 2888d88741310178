# SPDX-License-Identifier: Apache-2.0
# The systems of ASTRA-sim's case studies 1 and 2 as its input files; sourced by their run.sh.
# Uses $orrery, $here (folder of the trace) and $scratch; $memory is local-mem-bw in GB/s.

# inputs TOPOLOGY NPUS BANDWIDTH LATENCY ALGORITHMS [LINES]: lists with commas -> network.yml and
# system.json; LINES are further lines of the latter.
inputs() {
  latencies=$(echo "$2" | sed "s/[0-9][0-9]*/$4/g")
  printf 'topology: [ %s ]\nnpus_count: [ %s ]\nbandwidth: [ %s ]\nlatency: [ %s ]\n' \
    "$1" "$2" "$3" "$latencies" >"$scratch/network.yml"
  list=$(echo "$5" | sed 's/[A-Za-z][A-Za-z]*/"&"/g')
  {
    printf '{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,\n'
    printf ' "preferred-dataset-splits": 64, "local-mem-bw": %s,\n' "$memory"
    for operation in all-reduce all-gather reduce-scatter all-to-all; do
      printf ' "%s-implementation": [%s],\n' "$operation" "$list"
    done
    printf '%s "collective-optimization": "localBWAware"}\n' "$6"
  } >"$scratch/system.json"
}

# both: cycles with ASTRA-sim's semantics and natively, on one line.
both() {
  "$orrery" astra --workload-configuration="$here/all_reduce_1GiB.et" \
    --system-configuration="$scratch/system.json" --network-configuration="$scratch/network.yml" \
    --remote-memory-configuration="$here/memory.json" --native --json |
    awk -F'[:,]' '/"cycles":/ { printf "%d ", $2 } END { print "" }'
}
