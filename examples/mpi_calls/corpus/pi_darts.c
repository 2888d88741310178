// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Pi by random points: hits of all ranks together.
int main(int argc, char **argv) {
  int rank, size, i, n = 20000, hits = 0, total;
  double x, y;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  srand(rank + 1);
  for (i = rank; i < n; i += size) {
    x = rand() / (double)RAND_MAX;
    y = rand() / (double)RAND_MAX;
    if (x * x + y * y <= 1.0) {
      hits++;
    }
  }
  MPI_Reduce(&hits, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("pi is about %.4f\n", 4.0 * total / n);
  }
  MPI_Finalize();
  return 0;
}
