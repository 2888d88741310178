#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ASTRA-sim 2.0, case study 3: ZeRO-Infinity beside two hierarchical memory pools, 256 GPUs, a
# mixture-of-experts model of a trillion parameters. run.sh [FOLDER] writes its charts there.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
charts=${1:-$scratch}
mkdir -p "$charts"

plan="--model kimi-k2 --dp 256 --ep 128 --zero 3 --global-batch 256 --microbatch 1 --recompute full
      --attention flash --grad-type bf16 --offload-optimizer remote --offload-params remote
      --overlap-param-gather --overlap-grad-reduce"

# step MACHINE SWITCHES TOKENS: milliseconds of a step, and of it those without computation.
step() {
  # shellcheck disable=SC2086  # several words
  "$orrery" simulate $plan --machine "$1" --pool-collectives "$2" --sequence "$3" --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { t = $at["step_time_s"]
               c = $at["breakdown_s.forward"] + $at["breakdown_s.backward"] \
                 + $at["breakdown_s.recompute"] + $at["breakdown_s.optimizer"]
               printf "%.1f %.1f\n", 1000 * t, 1000 * (t - c) }'
}

# row NAME TOKENS MACHINE SWITCHES: a line, and how many times faster it is than `reference`.
row() {
  step "$3" "$4" "$2" | awk -v name="$1" -v tokens="$2" -v of="$reference" '
    { split(of == "" ? $0 : of, r, " ")
      printf "%-34s %8d %10.1f %10.1f %9.2f %9.2f\n", name, tokens, $1, $2, r[1] / $1, r[2] / $2 }'
}

header() {
  printf '%-34s %8s %10s %10s %9s %9s\n' "$1" tokens "step ms" "exposed" faster "exposed x"
}

header "memory system"
echo 'tokens,"HierMem (baseline), step","HierMem (baseline), exposed","HierMem (opt), step","HierMem (opt), exposed"' >"$scratch/speedup.csv"
for tokens in 256 512 1024 2048 4096; do
  reference=$(step zero-infinity false "$tokens")
  row ZeRO-Infinity "$tokens" zero-infinity false
  row "HierMem (baseline)" "$tokens" hiermem-baseline true | tee "$scratch/baseline"
  row "HierMem (opt)" "$tokens" hiermem-opt true | tee "$scratch/opt"
  awk -v t="$tokens" '{ line = line "," $(NF - 1) "," $NF } END { print t line }' \
    "$scratch/baseline" "$scratch/opt" >>"$scratch/speedup.csv"
done

# with NAME SED...: a machine file made of the baseline's.
with() {
  file=$scratch/$1.yaml
  shift
  "$orrery" show machine hiermem-baseline --yaml | sed "$@" >"$file"
}
pool='/^remote_memory:/,/^origins:/'
with groups -e "$pool s/ bandwidth: .*/ bandwidth: 500 GB\/s/"
with fabric -e "$pool s/_bandwidth: .*/_bandwidth: 512 GB\/s/"
with network -e "/^network:/,/^remote_memory:/ s/ bandwidth: .*/ bandwidth: 512 GB\/s/"

echo
header "HierMem (baseline) with"
reference=$(step hiermem-baseline true 1024)
row "nothing else" 1024 hiermem-baseline true
row "gathers on the network" 1024 hiermem-baseline false
row "500 GB/s per memory group" 1024 "$scratch/groups.yaml" true
row "512 GB/s in-node fabric" 1024 "$scratch/fabric.yaml" true
row "512 GB/s between GPUs" 1024 "$scratch/network.yaml" true
row "all three: HierMem (opt)" 1024 hiermem-opt true

"$orrery" plot lines "$scratch/speedup.csv" --log-x --x-label "tokens per GPU" \
  --y-label "times faster than ZeRO-Infinity" --title "Memory systems of ASTRA-sim 2.0, Kimi K2" \
  >"$charts/speedup.svg"
