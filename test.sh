#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test and check, in the order in which they are likely to fail. Needs no terminal; run it again
# at any time: what is built and unchanged is not built again.
#
#   ./test.sh         what a change must pass
#   ./test.sh --all   also the slow tests, the unit tests under each sanitizer, and all of clang-tidy on every source
set -euo pipefail
cd "$(dirname "$0")"

all=false
case "${1:-}" in
  "") ;;
  --all) all=true ;;
  *) echo "usage: ./test.sh [--all]" >&2; exit 2 ;;
esac

# What property and fuzz tests draw from: the same tree passes twice. 0: something new each time.
seed=1
if $all; then seed=0; else export RC_PARAMS="${RC_PARAMS-seed=1}"; fi

step() { echo; echo "== $* (after $SECONDS s)"; }
slow=(--label-exclude slow)
slow_tests=()
fuzz_seconds=2
tidy=(--quick --budget 60)
if $all; then
  slow=()
  slow_tests=(slow_tests)
  fuzz_seconds=20
  tidy=(--all)
fi

# build_and_test PRESET LABELS TARGETS...
build_and_test() {
  cmake --preset "$1" -DORRERY_FUZZ_SEED=$seed -DORRERY_FUZZ_SECONDS=$fuzz_seconds --log-level=NOTICE
  cmake --build --preset "$1" --target "${@:3}"
  ctest --preset "$1" --parallel "$(nproc)" --label-regex "$2" "${slow[@]}"
}

step "packages"
tools/setup.sh test

step "format: clang-format-16"
find src tests bench -name '*.h' -o -name '*.cc' | xargs clang-format-16 --dry-run --Werror

step "layers; licence lines, lengths and folder pages"
python3 -B tools/check_layers.py .
python3 -B tools/check_tree.py .

step "release: build, unit, property and validation tests, one definition of each name"
build_and_test release 'unit|property|validation|slow' all odr "${slow_tests[@]}"

step "install, find_package(orrery), Debian packages"
tests/install/install_test.sh build/release

# Whole rooms under a sanitizer take most of an hour: with --all. Always: each parser for a few seconds on mutated
# input, and the main paths of the command.
step "asan: the fuzzed parsers and the command, unoptimised, with assertions and sanitizers"
build_and_test asan fuzz orrery fuzz_targets
tests/smoke/smoke_test.sh build/asan/orrery

if $all; then
  step "asan and tsan: the unit tests with sanitizers"
  build_and_test asan-tests unit unit_tests
  build_and_test tsan unit unit_tests
fi

step "clang-tidy-16"
python3 -B tools/run_tidy.py build/release "${tidy[@]}"

step "all passed"
