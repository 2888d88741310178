#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Llama-3.1-8B on one H100: four engines at one rate, then the largest rate within a limit, and
# what one or two GPUs can give a user or be made of; a long prompt on one GPU and on four.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
load="--model llama-3.1-8b --machine dgx-h100 --input 1000 --output 250 --requests 2000"

printf '%-12s %10s %10s %10s %10s\n' engine "TTFT p50" "TPOT p50" "ITL p99" "tokens/s"
for engine in vllm@0.19 vllm@0.10 vllm@0.6 sglang@0.5; do
  "$orrery" serve $load --rate 20 --engine "$engine" | awk -v engine="$engine" '
    /Median TTFT/ { ttft = $NF } /Median TPOT/ { tpot = $NF } /P99 ITL/ { itl = $NF }
    /Output token throughput/ { tokens = $NF }
    END { printf "%-12s %10s %10s %10s %10s\n", engine, ttft, tpot, itl, tokens }'
done
"$orrery" serve $load --search rate --slo "ttft=500 ms,tpot=20 ms" | sed -n 1p
"$orrery" serve --model llama-3.1-8b --machine dgx-h100 --devices 2 --input 1000 --output 250 \
  --search plan --formats bf16,w8a8
"$orrery" serve $load --rate 60 --replicas 4 | grep -E "Mean TTFT|P99 ITL"
"$orrery" serve $load --rate 60 --replicas 2 --prefill 2 | grep -E "Mean TTFT|P99 ITL|moving"
here=$(dirname "$0")
for engine in vllm@0.19 "$here/context.yaml"; do
  "$orrery" serve --model llama-3.1-8b --machine dgx-h100 --input 120000 --output 10 --rate 0.01 \
    --requests 5 --engine "$engine" | grep "Mean TTFT"
done
