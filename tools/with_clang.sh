#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A compiler launcher (ORRERY_CLANG_TESTS): clang++-16 instead of the compiler that CMake names first. Unoptimised it
# takes half of g++'s time. Warnings are g++'s and clang-tidy's to give.
shift
case " $* " in
  *" -x c++-header "*) rm -f "$(sed -E 's/.* -o ([^ ]+) .*/\1/' <<< " $* ")" ;;  # it would be read
esac
exec $(command -v ccache) clang++-16 -w "$@"
