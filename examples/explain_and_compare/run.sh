#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Why a step takes its time, and what the change that follows from it brings, in time and in money.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cat > "$work/plan.yaml" <<'PLAN'
dp: 16
global_batch: 16
sequence: 8192
attention: flash
zero: 1
PLAN
on="--model llama-3-8b --machine dgx-h100 --plan $work/plan.yaml --allow-oom"

echo "# Why it takes its time:"
# shellcheck disable=SC2086  # several words
"$orrery" explain $on --items 5
echo "# With gradients reduced during the backward pass:"
# shellcheck disable=SC2086
"$orrery" simulate $on --price-per-hour 2.5 --json > "$work/before.json"
# shellcheck disable=SC2086
"$orrery" simulate $on --price-per-hour 2.5 --overlap-grad-reduce --json > "$work/after.json"
"$orrery" compare "$work/before.json" "$work/after.json"
