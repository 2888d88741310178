#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What share of its time a job of 16,384 devices keeps: by the expression, with failures by component, with few spares,
# and what a run of 15 T tokens takes.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
$orrery goodput --devices 16384 --mtbf 50677h --checkpoint-cost 10s --restart 300s --days 54 --seeds 300
echo; echo "by component, four spares, repairs of three days, running on without"
$orrery goodput --devices 16384 --failures "$here/components.yaml" --checkpoint-cost 10s --restart 300s --days 54 \
  --seeds 300 --spares 4 --repair 3d --without-spare shrink
echo; echo "asynchronous checkpoints: 1 s in the way, durable after 2 minutes"
$orrery goodput --devices 16384 --mtbf 50677h --checkpoint-cost 1s --checkpoint-persist 120s --restart 300s --days 54 \
  --seeds 300 | grep -E "Goodput|Checkpoints"
echo; echo "a run"
$orrery run-plan --tokens 300B --model gpt3-175b --machine dgx-a100-80g --devices 1024 --plan gpt3-175b-1024 \
  --mtbf 50677h --restart 300s --checkpoint-to nvme --checkpoint-through host
