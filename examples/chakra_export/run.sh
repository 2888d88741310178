#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training step as Chakra execution traces: what every rank computes and sends.
set -e
orrery=${ORRERY:-orrery}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

step="--model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 8"
echo "# GPT-2 on 8 A100s, tp 2, pp 2, dp 2: one .et file per rank, and the groups"
"$orrery" export chakra $step --output trace/gpt2
echo "# Its communicators: 4 of tp, 4 of dp, 4 of the tied embedding"
cat trace/gpt2.groups.json
echo "# As numbers"
"$orrery" export chakra $step --output trace/gpt2 --json
