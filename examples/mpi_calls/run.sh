#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Takes the MPI calls out of 30 programs, learns to put them back, scores what it proposes, and runs one program.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
$orrery mpi strip "$here/corpus" > "$out/truth.jsonl"
$orrery mpi strip "$here/corpus/ring.c" > "$out/ring.json"
$orrery mpi restore "$out/ring.json" --out "$out/ring.c"
cmp "$out/ring.c" "$here/corpus/ring.c" && echo "ring.c came back byte for byte"
echo; echo "each program from the other 29"
$orrery mpi train "$here/corpus" --out "$out/model.json"
echo; echo "the rules alone"
$orrery mpi complete "$out/truth.jsonl" > "$out/rules.jsonl"
$orrery mpi score "$out/truth.jsonl" "$out/rules.jsonl" --tolerance 2 | head -n 9
if command -v mpicc.openmpi > /dev/null || command -v mpicc.mpich > /dev/null; then
  echo; echo "compiled and run"
  $orrery mpi check "$here/corpus/ring.c" --ranks 2 || true
fi
