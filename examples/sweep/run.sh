#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A study of 48 points: the best split for each network, and what is not run again.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

echo "# The first 20 points, as if somebody had stopped it; then the others:"
"$orrery" sweep "$here/study.yaml" --store "$work/study.db" --limit 20 | sed "s|$work/||"
"$orrery" sweep "$here/study.yaml" --store "$work/study.db" \
  --plot machine.network.infiniband.bandwidth,step_time_s --out "$work/step.svg" | sed "s|$work/||"
echo "# The fastest split on each network:"
"$orrery" query "$work/study.db" 'SELECT "machine.network.infiniband.bandwidth" AS infiniband,
  "plan.tp" AS tp, "plan.pp" AS pp, min(step_time_s) AS step_s, mfu FROM rows
  GROUP BY infiniband ORDER BY point'
echo "# What was refused, and why:"
"$orrery" query "$work/study.db" 'SELECT "plan.tp" AS tp, "plan.pp" AS pp, count(*) AS points, memory_bytes >> 30 AS GiB
  FROM rows WHERE error IS NOT NULL GROUP BY tp, pp'
