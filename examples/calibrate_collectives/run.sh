#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Protocols fitted to measured collectives; then what they say about sizes that were not measured.
set -eo pipefail
here=$(dirname "$0")
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

"$orrery" calibrate collectives "$here/nccl.csv" --machine dgx-a100-80g --output "$work/fitted.yaml"
echo "# The fitted machine between the measured sizes:"
"$orrery" collective all_gather --machine "$work/fitted.yaml" --devices 8 --min 2MiB --max 512MiB --factor 4
echo "# The shipped DGX H100, where the switch can add up:"
"$orrery" collective all_reduce --machine dgx-h100 --devices 8 --min 2MiB --max 512MiB --factor 4
