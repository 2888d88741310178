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

# What property and fuzz tests draw from: the same tree passes twice. 0: something new each time. Sixty cases of each
# property; with --all a hundred.
seed=1
if $all; then seed=0; else export RC_PARAMS="${RC_PARAMS-seed=1 max_success=60}"; fi

step() { echo; echo "== $* (after $SECONDS s)"; }
tidy=(--quick --budget 12)
if $all; then tidy=(--all); fi

# build_and_test PRESET TARGETS LABELS EXCLUDED_LABELS [OPTIONS...]: one test more at once than there are processors, since
# many wait for processes of theirs.
build_and_test() {
  cmake --preset "$1" -DORRERY_FUZZ_SEED=$seed -DORRERY_FUZZ_SECONDS=20 --log-level=NOTICE "${@:5}"
  cmake --build --preset "$1" --target $2
  ctest --preset "$1" --parallel $(($(nproc) + 1)) --label-regex "$3" --label-exclude "$4"
}

step "packages"
tools/setup.sh test

step "format: clang-format-16"
find src tests bench -name '*.h' -o -name '*.cc' | xargs -P "$(nproc)" -n 100 clang-format-16 --dry-run --Werror

step "layers; licence lines, lengths, folder pages, one definition of each name"
python3 -B tools/check_layers.py .
python3 -B tools/check_tree.py .

step "check: unit, property and validation tests with assertions and checked indices; parsers on mutated input; install, find_package(orrery), Debian packages"
# All at once compiles in a third less time with the rooms' headers precompiled; a folder that is there stays as it was
# configured: a changed header then compiles what includes it.
cold=()
[ -e build/check/CMakeCache.txt ] || cold=(-DORRERY_COLD_BUILD=ON)
build_and_test check all 'unit|property|validation|fuzz|install' slow "${cold[@]}"

if $all; then
  step "release: what a user gets, slow tests"
  build_and_test release "all slow_tests odr" 'unit|property|validation|fuzz|install|slow' none -DORRERY_ODR=ON
  step "asan: the parsers fuzzed by what they reach, the rooms that compute, the command's main paths"
  build_and_test asan fuzz_targets fuzz none
  step "asan and tsan: the unit tests with sanitizers"
  build_and_test asan-tests unit_tests unit slow
  build_and_test tsan unit_tests unit slow
fi

step "clang-tidy-16"
python3 -B tools/run_tidy.py build/check "${tidy[@]}"

step "all passed"
