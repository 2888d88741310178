#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An H100 with the kernels of an A100 gets its own from measured GEMMs.
set -eo pipefail
here=$(dirname "$0")
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

"$orrery" show machine dgx-a100-80g --yaml |
  sed -e 's/^  units: .*/  units: 132/' -e 's/2039 GB\/s/3350 GB\/s/' \
      -e 's/bf16: 312 TFLOP\/s/bf16: 989.4 TFLOP\/s, fp8: 1978.9 TFLOP\/s/' > "$work/base.yaml"
"$orrery" calibrate gemm "$here/gemm.csv" --machine "$work/base.yaml" --cast --output "$work/fitted.yaml"
for machine in base fitted; do
  echo "# $machine:"
  "$orrery" simulate --model llama-3-8b --machine "$work/$machine.yaml" --devices 8 --tp 8 --sequence 2048 \
    --global-batch 64 --attention flash | grep "Step time"
done
