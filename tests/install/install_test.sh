#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder and uses it from there as a stranger would: the command finds its
# configurations, a project finds and links the library, the Debian packages hold what they should.
#
#   tests/install/install_test.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { [ -e "$1" ] || { echo "install_test: missing $1" >&2; exit 1; }; }

cmake --install "$build" --prefix "$work/prefix" >/dev/null
expect "$work/prefix/share/man/man1/orrery.1"
expect "$work/prefix/share/bash-completion/completions/orrery"
expect "$work/prefix/share/orrery/configs/machines"

# Away from the source tree the shipped names come from PREFIX/share/orrery/configs.
cd "$work"
"$work/prefix/bin/orrery" --version
"$work/prefix/bin/orrery" show machine dgx-a100-80g >"$work/shown"
grep --quiet 'A100' "$work/shown"

cmake -G Ninja -S "$here" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" --log-level=NOTICE >/dev/null
cmake --build "$work/consumer" >/dev/null
env --unset=ORRERY_CONFIGS "$work/consumer/consumer" dgx-a100-80g

# Nothing that is shipped tells where it was built.
for file in "$work/prefix/bin/orrery" "$work"/prefix/lib*/liborrery_base.a; do
  if grep --quiet --text --fixed-strings "$(realpath "$here/../..")/configs" "$file"; then
    echo "install_test: $file names its source folder" >&2
    exit 1
  fi
done

# Packages go to the build folder, and nothing stays where cpack was run. zstd: what is thrown away need not be small.
mkdir "$work/elsewhere"
cd "$work/elsewhere"
cpack --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=zstd >/dev/null
[ -z "$(ls -A)" ] || { echo "install_test: cpack leaves $(ls -A)" >&2; exit 1; }
cd "$build"
for package in packages/orrery_*.deb packages/orrery-dev_*.deb; do
  dpkg-deb --field "$package" Package Version Depends
done
dpkg-deb --field packages/orrery_*.deb Depends | grep --quiet libyaml-0
# Listed first: grep --quiet would close the pipe early.
dpkg-deb --contents packages/orrery_*.deb >"$work/contents"
for path in usr/share/doc/orrery/README.md usr/share/doc/orrery/examples/ usr/bin/orrery usr/share/man/man1/orrery.1 usr/share/orrery/configs/machines/; do
  grep --quiet "\./$path" "$work/contents"
done
echo "install_test: passed"
