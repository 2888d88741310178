#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Chimera's pairs of parallelisms: its synthetic sweep and passes of models, and the same pairs on machines of today.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

echo "# Six pairs on four flit networks, 4 KB to 64 KB (synthetic.yaml: to 32 MB, a minute on two cores):"
sed 's/to: 32768 KiB/to: 64 KiB/' "$here/synthetic.yaml" >"$work/synthetic.yaml"
"$orrery" sweep "$work/synthetic.yaml" --store "$work/synthetic.db" | sed "s|$work/||"
echo "# 64 KB: cycles and speed-ups, ours and with the artifact's defects:"
"$orrery" query "$work/synthetic.db" "SELECT \"chimera.pair\" AS pair, \"chimera.network\" AS network,
  base_cycles, fused_cycles, round(speedup, 3) AS speedup, round(artifact_speedup, 3) AS artifact
  FROM rows WHERE \"chimera.message\" = '64 KiB'"
"$orrery" query "$work/synthetic.db" "SELECT \"chimera.pair\" || ' ' || \"chimera.network\" AS pair, speedup,
  artifact_speedup AS artifact FROM rows WHERE \"chimera.message\" = '64 KiB' ORDER BY point" --csv |
  "$orrery" plot bars - --title 'Fused against published, 64 KB' --y-label speed-up >"$work/synthetic.svg"
echo "# Backward of two chunks interleaved, all layers and the segment that the artifact multiplies:"
"$orrery" sweep "$here/backward_chunked.yaml" --store "$work/chunked.db" | sed "s|$work/||"
"$orrery" query "$work/chunked.db" 'SELECT "chimera.model" AS model, "chimera.network" AS network,
  "chimera.pair" AS pair, base_cycles, fused_cycles, round(speedup, 3) AS speedup,
  round(segment_speedup, 3) AS segment FROM rows ORDER BY point'
echo "# On machines of today, 8192 tokens of 7168 features:"
"$orrery" sweep "$here/today.yaml" --store "$work/today.db" | sed "s|$work/||"
"$orrery" query "$work/today.db" 'SELECT "fusion.pair" AS pair, machine, round(base_s * 1e6, 1) AS base_us,
  round(fused_s * 1e6, 1) AS fused_us, round(speedup, 3) AS speedup, fused_steps FROM rows ORDER BY point'
