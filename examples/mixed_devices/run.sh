#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two sorts of devices in one cluster: stages and shares of the batch that follow what each does.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
cluster=$(dirname "$0")/cluster.yaml
step() {
  "$orrery" simulate --model gpt-7.5b --machine "$cluster" --global-batch 128 --sequence 2048 "$@" --json |
    sed -n 's/^ *"step_time_s": \([0-9.]*\).*/\1 s/p' | sed -n 1p
}

echo "Replicas, 128 sequences over 16 of them (tp 2, dp 16):"
printf '  8 each           '; step --tp 2 --dp 16
printf '  batch_shares auto '; step --tp 2 --dp 16 --batch-shares auto
printf '  the H100 alone   '; step --tp 2 --dp 8 --parts h100
echo "Stages, 36 layers over 4 of them (tp 2, pp 4, dp 4):"
printf '  9 each           '; step --tp 2 --pp 4 --dp 4
printf '  stage_layers auto '; step --tp 2 --pp 4 --dp 4 --stage-layers auto
printf '  A100 first        '; step --tp 2 --pp 4 --dp 4 --stage-layers auto --parts a100,h100
echo "The best of a small space:"
"$orrery" plan --model gpt-7.5b --machine "$cluster" --devices 32 --batch 128 --sequence 2048 --only tp=1,2 \
  --only cp=1 --only schedule=1f1b --only microbatch=1,2 --only pp=1,2,4 --only offload_optimizer=none \
  --only offload_activations=0 --only recompute=none --top 3 --estimates 100 --simulations 12
