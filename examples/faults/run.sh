#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A training step while a rank computes half as fast and a NIC works at a quarter of its rate: how long it takes, and
# whether the telemetry of the run tells. Then bare flows around a lost link, and two jobs on shared uplinks.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# step WORDS...: step time of gpt2 on two nodes.
step() {
  $orrery simulate --model gpt2 --machine dgx-a100-80g --devices 16 --tp 2 --dp 8 --global-batch 16 --network flow "$@" |
    sed -n 's/^Step time *//p'
}
echo "healthy        $(step)"
echo "with faults    $(step --faults "$here/faults.yaml" --telemetry-out "$work/telemetry.jsonl")"
$orrery diagnose "$work/telemetry.jsonl"

flows() {
  $orrery flow --topology leaf_spine:leaves=4,spines=4,hosts=4 --traffic permutation --bytes 12.5MB "$@" |
    grep -E "rerouted|last finish"
}
echo "flows, healthy"; flows --routing colour
echo "flows, a lost link"; flows --routing colour --faults "$here/lost_spine.yaml"

echo "jobs"
$orrery simulate --jobs "$here/jobs.yaml" --machine "$here/oversubscribed.yaml" --devices 16 --network flow
