#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Findings of "Optimizing Distributed Training on Frontier for Large Language Models" (arXiv:2312.12705), simulated.
#   run.sh [throughput|weak|strong|tp|pp|microbatches|microbatch|log]...     all of them without an argument
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")

# simulate MODEL FLAGS...: GCDs, step time in s, MFU in %, TFLOP/s per GCD with recompute, memory in GiB.
simulate() {
  model=$1
  shift
  "$orrery" simulate --model "frontier-$model" --machine frontier --plan "frontier-$model" --csv "$@" |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { print $at["devices"], $at["step_time_s"], 100 * $at["mfu"],
                     $at["hardware_flops_per_device"] / 1e12, $at["memory_bytes.total"] / 1024 ^ 3 }'
}

throughput() {
  echo "# Throughput of the three recipes; the machine's GEMM efficiency is fitted to these"
  printf '%-6s %6s %9s %10s %10s\n' model GCDs "step s" "% of peak" published
  while read -r model published; do
    echo "$model $(simulate "$model") $published" |
      awk '{ printf "%-6s %6d %9.1f %10.2f %10.2f\n", $1, $2, $3, $4, $7 }'
  done <<RECIPES
22b 38.38
175b 36.14
1t 31.96
RECIPES
}

# scaling: lines "model replicas batch replicas batch published"; throughput per GCD of the second in % of the first.
scaling() {
  printf '%-6s %6s %6s %7s %7s %10s %10s\n' model GCDs to batch to "per GCD %" published
  while read -r model dp batch more_dp more_batch published; do
    echo "$model $batch $more_batch $published" \
      "$(simulate "$model" --dp "$dp" --global-batch "$batch")" \
      "$(simulate "$model" --dp "$more_dp" --global-batch "$more_batch")" |
      awk '{ printf "%-6s %6d %6d %7d %7d %10.1f %10.1f\n", $1, $5, $10, $2, $3, 100 * $12 / $7, $4 }'
  done
}

weak() {
  echo "# Weak scaling: the batch grows with the replicas"
  scaling <<RUNS
175b 2 1280 16 10240 100
1t 2 3200 6 9600 100
RUNS
}

strong() {
  echo "# Strong scaling: the same batch on more replicas"
  scaling <<RUNS
175b 2 8000 16 8000 89
1t 1 8016 6 8016 87
RUNS
}

tp() {
  echo "# Tensor parallelism: 22B, pp 8, 128 GCDs, batch 640; from 16 on it crosses Slingshot"
  printf '%4s %4s %9s %10s %11s\n' tp dp "step s" "% of peak" "memory GiB"
  for tp in 1 2 4 8 16; do
    echo "$tp $((16 / tp)) $(simulate 22b --tp $tp --dp $((16 / tp)))" |
      awk '{ printf "%4d %4d %9.2f %10.2f %11.1f\n", $1, $2, $4, $5, $7 }'
  done
}

pp() {
  echo "# Pipeline stages: 175B, tp 4, dp 4, with 256 microbatches and with 8 per stage"
  printf '%4s %6s %13s %11s %13s\n' pp GCDs "% of peak 256" "microbatch" "% of peak"
  for pp in 8 16 32 48; do
    echo "$pp $((8 * pp)) $(simulate 175b --pp $pp --dp 4 --global-batch 1024)" \
      "$(simulate 175b --pp $pp --dp 4 --global-batch $((32 * pp)))" |
      awk '{ printf "%4d %6d %13.2f %11d %13.2f\n", $1, $3, $5, $2, $10 }'
  done
}

# What is lost: 1 - m t / T, t being the time of one more microbatch, taken from the last two lines.
microbatches() {
  echo "# Microbatches m: 22B, tp 2, pp 8; the bubble is (p - 1) / (m + p - 1)"
  printf '%6s %9s %10s %8s %10s\n' m "step s" "% of peak" "lost %" "formula %"
  for m in 8 16 32 64 128 256 512; do
    echo "$m $(simulate 22b --tp 2 --dp 1 --global-batch $m)"
  done | awk '{ m[NR] = $1; step[NR] = $3; mfu[NR] = $4 }
              END { t = (step[NR] - step[NR - 1]) / (m[NR] - m[NR - 1])
                    for (i = 1; i <= NR; i++)
                      printf "%6d %9.2f %10.2f %8.1f %10.1f\n", m[i], step[i], mfu[i],
                             100 * (1 - m[i] * t / step[i]), 100 * 7 / (m[i] + 7) }'
}

microbatch() {
  echo "# Sequences per microbatch: 22B, tp 2, pp 8, with batch 128 and with 128 microbatches"
  printf '%10s %13s %13s %11s\n' microbatch "% of peak 128" "% of peak" "memory GiB"
  for size in 1 2 4 8; do
    echo "$size $(simulate 22b --tp 2 --dp 1 --microbatch $size --global-batch 128)" \
      "$(simulate 22b --tp 2 --dp 1 --microbatch $size --global-batch $((128 * size)))" |
      awk '{ printf "%10d %13.2f %13.2f %11.1f\n", $1, $4, $9, $6 }'
  done
}

# 96 B S L H^2 (1 + S / 6H + V / 16LH) / (time * GCDs): recomputation counts.
log() {
  echo "# A public job log: 175B, 128 GCDs, batch 1280; steady iterations of 195 s and 149.3-150.5 \"TFLOPs\""
  printf '%-22s %8s %10s %10s\n' "" "step s" '"TFLOPs"' "% of peak"
  awk 'BEGIN { S = 2048; L = 96; H = 12288; V = 51200
               flops = 96 * 1280 * S * L * H * H * (1 + S / (6 * H) + V / (16 * L * H))
               model = 72 * 1280 * S * L * H * H * (1 + S / (6 * H) + V / (12 * L * H))
               printf "%-22s %8.2f %10.2f %10.2f\n", "formula at 195.08 s", 195.08,
                      flops / 195.08 / 128 / 1e12, 100 * model / 195.08 / 128 / 191.5e12 }'
  simulate 175b --global-batch 1280 |
    awk '{ printf "%-22s %8.2f %10.2f %10.2f\n", "simulated", $2, $4, $3 }'
}

[ $# -gt 0 ] || set -- throughput weak strong tp pp microbatches microbatch log
for finding; do
  case $finding in
    throughput | weak | strong | tp | pp | microbatches | microbatch | log) "$finding" ;;
    *) echo "run.sh: found '$finding', expected throughput, weak, strong, tp, pp, microbatches," \
      "microbatch or log" >&2; exit 2 ;;
  esac
done
