#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ASTRA-sim's inputs, unchanged; then what its quirks are worth.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")

run() {
  "$orrery" astra --workload-configuration="$here/trace" --system-configuration="$here/system.json" \
    --network-configuration="$here/network.yml" --remote-memory-configuration="$here/memory.json" "$@"
}

echo "# As ASTRA-sim prints it"
run 2>/dev/null | sed -n 1,2p
echo "..."

echo "# Cycles of the last rank"
cycles() {
  printf '%-34s' "$1"
  shift
  run "$@" 2>/dev/null | sed -n '$s/.* finished, \([0-9]*\) cycles.*/\1/p'
}
cycles "all quirks" # as ASTRA-sim
cycles "gib-bandwidth=off" --quirk gib-bandwidth=off
cycles "one-communication=off" --quirk one-communication=off
cycles "all=off" --quirk all=off
