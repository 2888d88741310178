// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// The time of a loop that all ranks begin together; the slowest counts.
int main(int argc, char **argv) {
  int rank, size, i;
  double start, elapsed, slowest, x = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  for (i = 0; i < 100000 * (rank + 1); i++) {
    x += 1.0 / (i + 1);
  }
  elapsed = MPI_Wtime() - start;
  MPI_Reduce(&elapsed, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("slowest %g s (%g)\n", slowest, x);
  }
  MPI_Finalize();
  return 0;
}
