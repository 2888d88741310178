#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Optimizer states and activations in host memory or on storage: time against device memory.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# run WHERE SHARE: optimizer states there, this share of the activations in host memory.
run() {
  printf '%-10s %10s ' "$1" "$2"
  # shellcheck disable=SC2086  # several words
  "$orrery" simulate $on --offload-optimizer "$1" --offload-activations "$2" --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%9.2f %9d %11.1f\n", $at["step_time_s"], $at["tokens_per_s"],
                      $at["memory_bytes.total"] / 1024 ^ 3 }'
}

echo "# Llama-2-13B on 8 H100 (tp 2), 4,096 tokens"
printf '%-10s %10s %9s %9s %11s\n' optimizer activations "step s" tokens/s "memory GiB"
on="--model llama-2-13b --machine dgx-h100 --tp 2 --sequence-parallel --dp 4 --zero 1 --attention flash
    --global-batch 32 --microbatch 2 --sequence 4096 --fused-grad-accumulation --allow-oom"
run none 0
run none 0.5
run none 1
run cpu 0
run nvme 0
run cpu 1
