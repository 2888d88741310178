// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// Rank 0 knows the settings, every rank needs them.
int main(int argc, char **argv) {
  int rank, size, n = 0;
  double tolerance = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    n = 512;
    tolerance = 1e-6;
  }
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(&tolerance, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  printf("rank %d: n %d, tolerance %g\n", rank, n, tolerance);
  MPI_Finalize();
  return 0;
}
