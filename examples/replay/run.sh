#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A step on two real ranks of MPI, and a machine file fitted to what its parts take here; then another plan on that file.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v mpicxx.openmpi >/dev/null && ! command -v mpicxx.mpich >/dev/null; then
  echo "no library of MPI: apt-get install libopenmpi-dev openmpi-bin"
  exit 0
fi
model=(--model gpt2 --sequence 128 --shrink 4 -n 2 --repeat "${REPEAT:-20}")
echo "# tensor parallel: fitted to its parts"
"$orrery" replay "${model[@]}" --tp 2 --global-batch 1 --output "$work/mine.yaml"
echo "# data parallel on the fitted machine: 'before' is a prediction"
"$orrery" replay "${model[@]}" --dp 2 --global-batch 2 --machine "$work/mine.yaml"
