#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ZeRO-3, ZeRO++ and shards over three levels on Frontier: simulated, by bandwidth alone, and fitted, each apart.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(cd "$(dirname "$0")" && pwd)

# step GCDS FLAGS...: seconds of a step of $model.
step() {
  local gcds=$1
  shift
  "$orrery" simulate --model "$model" --machine frontier --dp "$gcds" --global-batch "$gcds" --sequence "$tokens" --zero 3 \
    --recompute full --attention flash --compute-type fp16 --grad-type fp16 --grad-reduce-type fp16 "$@" --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
             { printf "%.4f", $at["step_time_s"] }'
}
quantised="--quantized-gather --quantized-reduce"
heading() {
  printf '\n# %s\n%-6s %6s %7s %9s %9s %9s %8s %8s %8s %8s\n' "$1" model GCDs tokens ZeRO-3 ZeRO++ 3-level \
    "++/3" "3l/++" "3l/3" scaling
}
# rows: lines of model, GCDs, tokens and three times; scaling is that of three levels from 64 GCDs.
rows() {
  awk '{ scaling = ""; if ($2 == 64) of_64 = $6; else scaling = sprintf("%.3f", of_64 / $6)
         printf "%-6s %6d %7d %9.3f %9.3f %9.3f %8.3f %8.3f %8.3f %8s\n", $1, $2, $3, $4, $5, $6, $4 / $5, $5 / $6, $4 / $6, scaling }'
}

heading "simulated (seconds)"
for row in "10B $here/gpt-10b.json" "20B gpt-neox-20b"; do
  read -r name model <<< "$row"
  for case in "64 2048" "384 2048"; do
    read -r gcds tokens <<< "$case"
    # shellcheck disable=SC2086  # several words
    echo "$name $gcds $tokens $(step "$gcds") $(step "$gcds" $quantised --secondary-shard 8) $(step "$gcds" $quantised \
      --shard-params 2 --shard-grads 8)"
  done
done | rows

heading "bandwidth alone: 160, 60 and 8 GB/s in the pair, the node and between nodes; 0.45 of 191.5 TFLOP/s"
for tokens in 2048 4096 8192; do
  for gcds in 64 384; do
    awk -v n="$gcds" -v t="$tokens" 'BEGIN {
      W = 2; c = 8 * t / (0.45 * 191.5e3)                 # seconds a billion parameters
      world = (n - 1) / n / 8; node = 7 / 8 / 60; pair = 1 / 2 / 160
      nodes = (n / 8 - 1) / (n / 8) / 8                   # ranks with the same place in their nodes
      a = c + 3 * W * world
      b = c + W / 2 * world + W / 2 * node + W / 4 * node + W / 32 * nodes
      d = c + 2 * W * pair + W / 4 * node + W / 32 * nodes
      print "any", n, t, a, b, d }'
  done
done | rows

heading "fitted to the published ratios (compute 1, gathers 0.99 over all and 0.77 in a node, a quantisation pass 0.24)"
awk 'BEGIN { x = 0.99; y = 0.77; q = 0.24
  a = 1 + 3 * x; b = 1 + x / 2 + 3 * y / 4 + x / 32 + 3 * q; d = 1 + y / 2 + x / 32 + q
  printf "%-6s %6s %7s %9.3f %9.3f %9.3f %8.3f %8.3f %8.3f\n", "any", "-", "-", a, b, d, a / b, b / d, a / d }'

heading "fitted to the ratios and to scaling, updated parameters gathered too (1.60, 1.08 on 64; 0.83 in a node; a pass 0.55)"
awk 'BEGIN { y = 0.83; q = 0.55
  for (n = 64; n <= 384; n += 320) {
    x = n == 64 ? 1.08 : 1.60
    print "any", n, 0, 1 + 3 * x, 1 + x / 2 + 3 * y / 4 + x / 32 + 3 * q, 1 + y / 2 + x / 32 + x / 4 + q } }' | rows
printf '%-6s %6s %7s %29s %8.3f %8.3f %8.3f %8.2f\n' published 384 - "" 1.405 1.707 2.398 0.94
