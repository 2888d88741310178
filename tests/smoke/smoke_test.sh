#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the command's main paths once each on small inputs; each must succeed and print something. Meant for a
# build without optimisation and with sanitizers, which keeps what inlining hides: assertions, checked indices, and
# the function that the linker kept of two with one name.
#
#   tests/smoke/smoke_test.sh ORRERY
set -euo pipefail
orrery=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ORRERY_CONFIGS=$PWD/configs

passes() {
  if ! "$@" >"$work/out" 2>"$work/err" || [ ! -s "$work/out" ]; then
    echo "smoke_test: failed: $*" >&2
    tail -n 20 "$work/err" >&2
    exit 1
  fi
}

small=(--model gpt2 --machine dgx-a100-80g)
passes "$orrery" simulate "${small[@]}" --tp 2 --global-batch 2
passes "$orrery" simulate "${small[@]}" --tp 2 --pp 2 --dp 2 --global-batch 16 --zero 1 --no-fold --verbose
passes "$orrery" simulate --model mixtral-8x7b --machine dgx-h100 --tp 2 --pp 2 --dp 4 --ep 4 --cp 2 \
  --sequence-parallel true --schedule zb-v --chunks 2 --microbatch 1 --global-batch 16 --zero 1 --sequence 4096 --attention flash
passes "$orrery" simulate --model llama-3-8b --machine zero-infinity --dp 4 --global-batch 4 --zero 3 \
  --offload-optimizer remote --offload-params remote --recompute full
passes "$orrery" explain "${small[@]}" --tp 2 --pp 2 --global-batch 4
passes "$orrery" simulate "${small[@]}" --dp 8 --global-batch 8 --json
cp "$work/out" "$work/dp.json"
passes "$orrery" simulate "${small[@]}" --tp 4 --dp 2 --global-batch 8 --json
cp "$work/out" "$work/tp.json"
passes "$orrery" compare "$work/dp.json" "$work/tp.json"
passes "$orrery" collective all_reduce --machine dgx-h100 --devices 16
passes "$orrery" export chakra "${small[@]}" --tp 2 --global-batch 2 --output "$work/trace"
passes env ORRERY="$orrery" bash examples/astra_quickstart/run.sh
passes env ORRERY="$orrery" bash examples/import_megatron/run.sh
passes env ORRERY="$orrery" bash examples/sweep/run.sh
passes "$orrery" estimate "${small[@]}" --tp 2 --pp 2 --global-batch 4
passes "$orrery" plan "${small[@]}" --devices 2 --batch 4 --only recompute=none
passes "$orrery" serve --model llama-3-8b --machine dgx-h100 --devices 1 --rate 5 --input 500 --output 50 --requests 20
passes "$orrery" spmd --graph Rmoe --devices 4 --layers 2 --profile nvl4
passes "$orrery" flit --topology mesh:4x4 --routing dor --rate 0.1
passes "$orrery" flow --topology fat_tree:k=4 --traffic permutation --bytes 2MB --network packet
passes "$orrery" gemm --machine dgx-h100 --type bf16 --m 4096 --n 4096 --k 4096
echo "smoke_test: $orrery runs"
