// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// The length of a vector whose parts are scattered from rank 0.
int main(int argc, char **argv) {
  int rank, size, i, count = 16;
  double *all = NULL, *part, local = 0.0, square;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  part = malloc(count * sizeof(double));
  if (rank == 0) {
    all = malloc(count * size * sizeof(double));
    for (i = 0; i < count * size; i++) {
      all[i] = 0.5;
    }
  }
  MPI_Scatter(all, count, MPI_DOUBLE, part, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (i = 0; i < count; i++) {
    local += part[i] * part[i];
  }
  MPI_Allreduce(&local, &square, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("length %g\n", sqrt(square));
  }
  free(all);
  free(part);
  MPI_Finalize();
  return 0;
}
