#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that are missing; does not touch apt or the network when none is.
#
#   tools/setup.sh build   what building and running needs (quickstart.sh)
#   tools/setup.sh test    that, and what test.sh needs: both MPIs, and Slurm with munge for the tests of clusters
#   tools/setup.sh site    that of build, and what the pages as a site need (target docs_site)
#   tools/setup.sh release that of all, and what tools/release.sh needs
set -euo pipefail

build=(g++ cmake ninja-build ccache python3
       libboost-dev libcli11-dev libexpected-dev libfmt-dev libyaml-dev nlohmann-json3-dev
       libpugixml-dev libprotobuf-dev protobuf-compiler libsqlite3-dev libmimalloc-dev
       pybind11-dev python3-dev python3-numpy)
test=(git ca-certificates libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev coinor-libcbc-dev
      libopenmpi-dev openmpi-bin libmpich-dev mpich clang-16 libclang-rt-16-dev clang-format-16 clang-tidy-16 lld-16 dpkg-dev
      slurm-wlm munge)
site=(python3-sphinx python3-myst-parser furo libjs-katex)
release=(lintian python3-setuptools python3-wheel python3-pip)

packages=("${build[@]}")
case "${1:-test}" in
  build) ;;
  test) packages+=("${test[@]}") ;;
  site) packages+=("${site[@]}") ;;
  release) packages+=("${test[@]}" "${site[@]}" "${release[@]}") ;;
  *)
    echo "setup: found '$1', expected build, test, site or release" >&2
    exit 2
    ;;
esac

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "setup: this needs Debian 12's apt-get, or the counterparts of: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo)
fi
echo "setup: apt-get installs ${missing[*]}"
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
