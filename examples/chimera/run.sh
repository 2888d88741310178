#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Chimera's pairs of parallelisms: its synthetic sweep, and the same pairs on machines of today.
set -e
orrery=${ORRERY:-orrery}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

echo "# Six pairs on four flit networks, 4 KB to 32 MB:"
"$orrery" sweep "$here/synthetic.yaml" --store "$work/synthetic.db" | sed "s|$work/||"
echo "# 64 KB: cycles, ours and the artifact's, where no messages meet:"
"$orrery" query "$work/synthetic.db" "SELECT \"chimera.pair\" AS pair, \"chimera.network\" AS network,
  base_cycles, fused_cycles, round(speedup, 3) AS speedup, round(artifact_speedup, 3) AS artifact
  FROM rows WHERE \"chimera.message\" = '64 KiB' AND error IS NULL"
echo "# On machines of today, 8192 tokens of 7168 features:"
"$orrery" sweep "$here/today.yaml" --store "$work/today.db" | sed "s|$work/||"
"$orrery" query "$work/today.db" 'SELECT "fusion.pair" AS pair, machine, round(base_s * 1e6, 1) AS base_us,
  round(fused_s * 1e6, 1) AS fused_us, round(speedup, 3) AS speedup, fused_steps FROM rows ORDER BY point'
