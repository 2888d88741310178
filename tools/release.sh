#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what a release has: Debian packages, the wheel, the pages as a site, schemas, and the list of what is in them.
#
#   tools/release.sh [FOLDER]        default: build/release-files
#   tools/release.sh --twice FOLDER  builds all of it a second time and compares the bytes
#
# The same commit gives the same bytes: dates are those of the commit (SOURCE_DATE_EPOCH), and no file names the
# folder it was built in. tools/setup.sh release installs what is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
twice=
if [ "${1:-}" = --twice ]; then
  twice=yes
  shift
fi
out=$(realpath -m "${1:-build/release-files}")
# Outside a checkout the caller says the date.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8 PYTHONHASHSEED=0
umask 022

# make FOLDER: builds in FOLDER/build and leaves the files in FOLDER/files.
make() {
  local build=$1/build files=$1/files
  mkdir -p "$files"
  # Packages are for /usr, and Debian's flags harden them.
  local flags
  flags=$(dpkg-buildflags --get CPPFLAGS; dpkg-buildflags --get CXXFLAGS | sed 's/-g //')
  CXXFLAGS="${flags//$'\n'/ } -ffile-prefix-map=$root=. -ffile-prefix-map=$build=build" \
  LDFLAGS=$(dpkg-buildflags --get LDFLAGS) \
    cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DORRERY_UNITY=ON \
    -DORRERY_TESTS=OFF -DORRERY_MPI=OFF -DPython_EXECUTABLE=/usr/bin/python3 --log-level=NOTICE
  cmake --build "$build"
  (cd "$build" && cpack --config CPackConfig.cmake >/dev/null)
  cp "$build"/packages/{orrery,orrery-dev,python3-orrery}_*.deb "$files"
  ORRERY_BUILD=$build /usr/bin/python3 -m pip wheel . --no-build-isolation --no-index --no-deps --quiet \
    --wheel-dir "$files"
  /usr/bin/python3 -B tools/make_site.py "$build/site" --version "$(version)"
  archive site "$build" "$files/orrery-$(version)-site.tar.gz"
  archive schema docs "$files/orrery-$(version)-schema.tar.gz"
  /usr/bin/python3 -B tools/make_sbom.py "$files" --version "$(version)" --date "$SOURCE_DATE_EPOCH" \
    > "$files/orrery.spdx.json"
  (cd "$files" && sha256sum -- *.deb *.whl *.tar.gz *.json > SHA256SUMS)
}

version() { sed -n 's/^project(orrery VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

# archive NAME PARENT FILE: a tar of PARENT/NAME whose bytes depend on nothing else.
archive() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=u=rwX,go=rX \
      -C "$2" -cf - "$1" | gzip -n9 > "$3"
}

rm -rf "${out:?}"/{build,files,first-build,first}
make "$out"
lintian --fail-on error,warning "$out"/files/*.deb
if [ -n "$twice" ]; then
  mv "$out/build" "$out/first-build"
  mv "$out/files" "$out/first"
  CCACHE_DISABLE=1 make "$out"  # what a cache remembers would be equal anyway
  (cd "$out/first" && sha256sum --check --quiet "$out/files/SHA256SUMS")
  echo "release: both builds have the same bytes"
fi
ls -l "$out/files"
