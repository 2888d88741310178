#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The best of 193,496 executions of 22B on 8 GPUs by Calculon's formulas, and the same plan simulated.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$orrery" calculon --application "$here/megatron-22B.json" --system "$here/a100_80g.json" \
  --devices 8 --batch 4 --save "$folder/plan.yaml" | grep -E 'executions|_par |interleaving|sample_rate|total'
"$orrery" simulate --model gpt-22b --machine dgx-a100-80g --plan "$folder/plan.yaml" --allow-oom |
  grep 'Step time'
