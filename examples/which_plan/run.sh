#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What to ask a planner beside the best plan: why, what else, and what to buy.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
job="--model gpt-7.5b --machine dgx-a100-80g --batch 64 --sequence 2048 --cp 1"

echo "# Does not fit on one device without the host's memory. What would help?"
"$orrery" plan $job --devices 1 --only offload_optimizer=none --only offload_activations=0 2>&1 || true
echo "# On 16: why this plan, what less memory costs, which plan if a rate is wrong, and a node less:"
"$orrery" plan $job --devices 16 --only schedule=1f1b --only microbatch=2,4 --only pp=1,2 \
  --only tp=1,2,4 --only offload_optimizer=none --only offload_activations=0 \
  --explain --plot "$work/memory.svg" --minmax-regret --elastic
echo "# Devices or network, for 100 dollars an hour:"
"$orrery" plan $job --devices 16 --only schedule=1f1b --only microbatch=2,4 --only pp=1,2 \
  --only tp=1,2,4 --only offload_optimizer=none --only offload_activations=0 \
  --vary devices=16,32 --vary network.1.bandwidth=12.5GB/s..50GB/s --vary device.price_per_hour=2.5 \
  --price network.1.bandwidth=0.05/GB/s --budget 100 --plot "$work/design.svg"
