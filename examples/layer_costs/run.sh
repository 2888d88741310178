#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fastest strategy of every layer within less and less memory.
set -e
orrery=${ORRERY:-orrery}
here=$(dirname "$0")

for memory in 60GB 40GB 25GB; do
  "$orrery" plan --layer-costs "$here/costs.yaml" --max-memory $memory | head -n 1
done
