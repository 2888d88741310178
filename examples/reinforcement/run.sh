#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One step of reinforcement learning on 32 H100: generate answers, score them, train on them, give
# the new weights to the engines; on the same GPUs in turn, or on GPUs of their own side by side.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
policy="--model llama-3.1-8b --machine dgx-h100"
answers=768
weights=16GB  # in bf16

value() { awk -F'[:,]' -v name="\"$1\"" '$1 ~ name && !n++ { print $2 }'; }

# Answers to prompts of 1000 tokens, 1000 on the mean and a few much longer, by an engine a GPU.
generate() {
  "$orrery" serve $policy --replicas "$1" --router least_tokens --arrival infinite \
    --requests $answers --input 1000 --output 'lognormal(1000, 0.6)' --json | value duration_s
}
# One forward pass over prompts and answers, for each of two models: the reference and the reward.
score() {
  "$orrery" serve $policy --replicas "$1" --router least_tokens --arrival infinite \
    --requests $answers --input 2000 --output 1 --json | value duration_s | awk '{ print 2 * $1 }'
}
train() {
  "$orrery" simulate $policy --devices "$1" --dp "$1" --zero 3 --recompute full --microbatch 1 \
    --global-batch $answers --sequence 2048 --json | value step_time_s
}
# Every engine has all weights, of which a rank of training has a part.
reshard() {
  "$orrery" collective "$1" --machine dgx-h100 --devices "$2" --min $weights --max $weights \
    --json | value time_s
}

printf '%-24s %9s %9s %9s %9s %9s\n' "" generate score train reshard "step (s)"
row() { # name generating training, both on the same GPUs: sum; else the longer
  awk -v name="$1" -v together="$2" -v g="$3" -v s="$4" -v t="$5" -v r="$6" 'BEGIN {
    busy = g + s
    step = (together ? busy + t : (busy > t ? busy : t)) + r
    printf "%-24s %9.2f %9.2f %9.2f %9.3f %9.2f\n", name, g, s, t, r, step }'
}
row "32 in turn" 1 "$(generate 32)" "$(score 32)" "$(train 32)" "$(reshard all_gather 32)"
for engines in 8 16 24; do
  row "$engines beside $((32 - engines))" 0 "$(generate $engines)" "$(score $engines)" \
    "$(train $((32 - engines)))" "$(reshard broadcast 32)"
done
