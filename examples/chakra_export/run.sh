#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A training step as Chakra execution traces: what every rank computes and sends.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

step="--model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 8"
echo "# GPT-2 on 8 A100s, tp 2, pp 2, dp 2: one .et file per rank, and the groups"
"$orrery" export chakra $step --output trace/gpt2
echo "# Its communicators: pairs on tp, dp, pp and of the tied embedding"
tr -d '\n' <trace/gpt2.groups.json
echo
echo "# The same files on ASTRA-sim's system layer: 8 NPUs behind a switch, compute as written"
cat >network.yml <<'END'
topology: [ Switch ]
npus_count: [ 8 ]
bandwidth: [ 250.0 ]  # GB/s
latency: [ 1000.0 ]  # ns
END
cat >system.json <<'END'
{"scheduling-policy": "FIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
 "preferred-dataset-splits": 1, "all-reduce-implementation": ["halvingDoubling"],
 "all-gather-implementation": ["halvingDoubling"], "reduce-scatter-implementation": ["halvingDoubling"],
 "all-to-all-implementation": ["direct"], "collective-optimization": "localBWAware",
 "local-mem-bw": 2000, "peak-perf": 312, "roofline-enabled": 0}
END
cat >memory.json <<'END'
{"memory-type": "NO_MEMORY_EXPANSION"}
END
"$orrery" astra --workload-configuration=trace/gpt2 --comm-group-configuration=trace/gpt2.groups.json \
  --system-configuration=system.json --network-configuration=network.yml \
  --remote-memory-configuration=memory.json
echo "# Orrery's own step time, s"
"$orrery" simulate $step --json | grep -o '"step_time_s": *[0-9.]*'
