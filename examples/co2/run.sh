#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers that step alone and average beside the next round (CO2): throughput over tau, published rows beside ours.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(cd "$(dirname "$0")" && pwd)

# words GPUS FLAGS...: tokens per second of ZeRO-2 on nodes of 8 A100 joined by 80 Gbit/s of TCP/IP each.
words() {
  local gpus=$1
  shift
  "$orrery" simulate --model llama-2-7b --machine "$here/machine.yaml" --dp "$gpus" --global-batch "$gpus" \
    --sequence 2048 --zero 2 --compute-type fp16 --grad-type fp16 --grad-reduce-type fp16 --dp-algorithm ring "$@" --csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { printf "%.0f", $at["tokens_per_s"] }'
}
workers="--shard-grads 8 --shard-optimizer 8 --data-parallel-update"

echo "# AdamW: three rows that three numbers of machine.yaml are fitted to"
printf '%5s %10s %10s %8s\n' GPUs words/s published error
for row in "8 18444" "16 3488" "128 22810"; do
  read -r gpus published <<< "$row"
  awk -v g="$gpus" -v w="$(words "$gpus")" -v p="$published" \
    'BEGIN { printf "%5d %10d %10d %+7.1f %%\n", g, w, p, 100 * (w / p - 1) }'
done

echo
echo "# CO2: predicted, but for the ratio of tau 12, which background_share is fitted to"
printf '%5s %10s %10s %7s\n' tau 16 128 ratio
for tau in 1 3 6 12 24 48; do
  # shellcheck disable=SC2086  # several words
  awk -v t="$tau" -v a="$(words 16 $workers co2 --tau "$tau")" -v b="$(words 128 $workers co2 --tau "$tau")" \
    'BEGIN { printf "%5d %10d %10d %7.2f\n", t, a, b, b / a / 8 }'
done
echo "published: tau 48, 128 GPUs 304736 words/s, ratio 1.06; tau 12, ratio 0.86"

echo
echo "# The family on 128 GPUs, tau 12"
for update in local_sgd slow_mo diloco co2; do
  # shellcheck disable=SC2086
  printf '%-10s %8s words/s\n' "$update" "$(words 128 $workers "$update" --tau 12)"
done
