#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A launch line becomes a plan and a model, the step is simulated, and one change is written back.
set -eo pipefail
here=$(dirname "$0")
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

"$orrery" import megatron "$here/launch.sh" --model-out "$work/model.json" > "$work/plan.yaml"
echo "# As launched:"
"$orrery" simulate --model "$work/model.json" --machine dgx-a100-80g --plan "$work/plan.yaml"
echo "# With full recompute and without sequence parallelism:"
"$orrery" simulate --model "$work/model.json" --machine dgx-a100-80g --plan "$work/plan.yaml" \
  --recompute full --sequence-parallel false
"$orrery" export megatron --model "$work/model.json" --machine dgx-a100-80g \
  --plan "$work/plan.yaml" --recompute full --sequence-parallel false
