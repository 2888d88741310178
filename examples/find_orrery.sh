#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the command that the examples run: $ORRERY, the one on PATH, else what quickstart.sh has built.
if [ -n "${ORRERY:-}" ]; then
  echo "$ORRERY"
elif command -v orrery >/dev/null; then
  command -v orrery
else
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  for build in release check dev; do
    if [ -x "$root/build/$build/orrery" ]; then
      echo "$root/build/$build/orrery"
      exit 0
    fi
  done
  echo "no orrery on PATH and none built; run ./quickstart.sh, or name one: ORRERY=path/to/orrery" >&2
  exit 1
fi
