#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fully sharded data parallelism: over how many devices to split parameters, gradients and optimizer states.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# run PARAMETERS GRADIENTS: states over all devices; $on says model, machine and devices.
run() {
  printf '%11d %10d ' "$1" "$2"
  # shellcheck disable=SC2086  # several words
  "$orrery" simulate $on --zero 3 --shard-params "$1" --shard-grads "$2" --recompute full \
    --overlap-grad-reduce --overlap-param-gather --compute-type fp16 --grad-type fp16 \
    --grad-reduce-type fp16 --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%9.1f %7.1f %11.1f\n", $at["step_time_s"], 100 * $at["mfu"],
                      $at["memory_bytes.total"] / 1024 ^ 3 }'
}
heading() {
  echo "# $1"
  printf '%11s %10s %9s %7s %11s\n' parameters gradients "step s" "MFU %" "memory GiB"
}

heading "GPT-NeoX-20B on 384 GCDs of Frontier: pairs at 200 GB/s, nodes of 8, 12.5 GB/s between nodes"
on="--model gpt-neox-20b --machine frontier --dp 384 --global-batch 3072 --attention flash"
run 2 8
run 8 8
run 8 64
run 64 64
run 384 384
heading "GPT-NeoX-20B on 64 V100s of 32 GB: nodes of 8, 9.71 Gbit/s between nodes"
on="--model gpt-neox-20b --machine v100-9.71gbit --dp 64 --global-batch 512"
run 4 8
run 8 8
run 8 64
run 64 64
