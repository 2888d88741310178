#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fastest strategy of every layer within less and less memory.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")

for memory in 60GB 40GB 25GB; do
  "$orrery" plan --layer-costs "$here/costs.yaml" --max-memory $memory | sed -n 1p
done
