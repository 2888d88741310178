#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test and check, in the order in which they are likely to fail. Needs no terminal; run it again
# at any time: what is built and unchanged is not built again.
#
#   ./test.sh         what a change must pass
#   ./test.sh --all   also the slow tests, the thread sanitizer, and all of clang-tidy on every source
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
tidy=(--quick --budget 60)
if $all; then
  slow=()
  tidy=(--all)
fi

# build_and_test PRESET LABELS TARGETS...
build_and_test() {
  cmake --preset "$1" -DORRERY_FUZZ_SEED=$seed --log-level=NOTICE
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

# Unit tests run where the sanitizers are; compiling them twice would take longer than all else.
step "release: build, property and validation tests"
if $all; then
  build_and_test release . all
else
  build_and_test release 'property|validation' shipped property_tests validation_tests
fi

step "odr: the command unoptimised, linked with a check of the one-definition rule, then run"
cmake --preset odr --log-level=NOTICE
cmake --build --preset odr
tests/smoke/smoke_test.sh build/odr/orrery

step "install, find_package(orrery), Debian packages"
tests/install/install_test.sh build/release

step "asan: the unit tests and, for a few seconds each, the fuzzed parsers with assertions and sanitizers"
build_and_test asan 'unit|fuzz' all

if $all; then
  step "tsan: the unit tests with the thread sanitizer"
  build_and_test tsan unit all
fi

step "clang-tidy-16"
python3 -B tools/run_tidy.py build/release "${tidy[@]}"

step "all passed"
