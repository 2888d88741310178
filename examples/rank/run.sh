#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which of many untrained networks are worth cluster time: four by hand, trained here to see what the proxies are worth, then
# a space of 200 cells (or $COUNT of them) with the simulated step of each, as a Pareto list and a chart.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "four by hand, trained for three epochs"
$orrery rank "$here/hand" --machine dgx-a100-80g --samples 32 --seeds 2 --train "${EPOCHS:-3}"
sed "s/^count: .*/count: ${COUNT:-200}/" "$here/cells.yaml" > "$out/cells.yaml"
echo; echo "${COUNT:-200} cells"
$orrery rank "$out/cells.yaml" --machine dgx-a100-80g --batch 4096 --devices 8 --samples 32 --seeds 1 \
  --plot "${PLOT:-$out/cells.svg}" | head -n "${LINES:-40}"
