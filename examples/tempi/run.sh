#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faster derived datatypes for a program of MPI: a halo exchange without and with the preload library.
set -eo pipefail
orrery=$(bash "$(dirname "$0")/../find_orrery.sh")
here=$(cd "$(dirname "$0")" && pwd)
libraries=$(dirname "$(readlink -f "$orrery")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# OpenMPI asks twice before it runs as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

found=false
for mpi in openmpi mpich; do
  if ! command -v mpicxx.$mpi >/dev/null || [ ! -e "$libraries/libtempi_$mpi.so" ]; then
    continue
  fi
  found=true
  mpicxx.$mpi -O2 -std=c++20 "$here/halo.cc" -o "$work/halo_$mpi"
  echo "# $mpi, 2 ranks: 26 neighbours, radius 3, 8 quantities"
  mpiexec.$mpi -n 2 "$work/halo_$mpi" ${EDGE:-64} ${ROUNDS:-20}
  echo "# the same program under libtempi_$mpi.so"
  mpiexec.$mpi -n 2 env LD_PRELOAD="$libraries/libtempi_$mpi.so" "$work/halo_$mpi" ${EDGE:-64} ${ROUNDS:-20}
  echo "# $mpi: MPI_Pack and MPI_Unpack, shape by shape"
  "$orrery" measure pack --mpi $mpi --rounds ${ROUNDS:-20}
done
if ! $found; then
  echo "no library of MPI: apt-get install libopenmpi-dev openmpi-bin, then build Orrery again"
fi
