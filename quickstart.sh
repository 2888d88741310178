#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to the first result: installs what is missing, builds, simulates one step.
set -euo pipefail
cd "$(dirname "$0")"

echo "== 1/3 packages"
tools/setup.sh build

echo "== 2/3 build: build/release/orrery"
cmake --preset release -DORRERY_TESTS=OFF --log-level=NOTICE
cmake --build --preset release --target orrery

command=(build/release/orrery simulate --model gpt3-175b --machine dgx-a100-80g --devices 1024
         --plan configs/plans/gpt3-175b-1024.yaml)
echo "== 3/3 ${command[*]}"
"${command[@]}"

cat <<'NEXT'

Where to go next
  build/release/orrery list machines          the shipped machines; also: models, plans
  build/release/orrery simulate --help        every field of a plan is a flag
  build/release/orrery validate               predictions against published measurements
  README.md                                   what happens to your input, folder by folder
  ./test.sh                                   every test and check
NEXT
