#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GEMMs in fewer bits: what each recipe saves, and what quantising costs.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# run MACHINE RECIPE: $on says model and plan.
run() {
  printf '%-12s %-12s ' "$1" "$2"
  # shellcheck disable=SC2086  # several words
  "$orrery" simulate $on --machine "$1" --quantization "$2" --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%9.3f %9d %11.1f\n", $at["step_time_s"], $at["tokens_per_s"],
                      $at["memory_bytes.total"] / 1024 ^ 3 }'
}

echo "# Llama-3-8B on 8 devices, fully sharded, 8,192 tokens"
printf '%-12s %-12s %9s %9s %11s\n' machine recipe "step s" tokens/s "memory GiB"
on="--model llama-3-8b --dp 8 --zero 3 --global-batch 128 --sequence 8192 --attention flash
    --recompute selective --overlap-grad-reduce --overlap-param-gather --fused-grad-accumulation"
for recipe in none fp8-delayed fp8-current fp8-block; do
  run dgx-h100 "$recipe"
done
for recipe in none fp8-current mxfp8 nvfp4; do
  run dgx-b200 "$recipe"
done
