// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 48

// y = A x: rows of A on every rank, x broadcast, y gathered.
int main(int argc, char **argv) {
  int rank, size, i, j, rows;
  double x[N], *a, *part, y[N];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rows = N / size;
  a = malloc(rows * N * sizeof(double));
  part = malloc(rows * sizeof(double));
  if (rank == 0) {
    for (i = 0; i < N; i++) {
      x[i] = 1.0;
    }
  }
  MPI_Bcast(x, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (i = 0; i < rows; i++) {
    part[i] = 0.0;
    for (j = 0; j < N; j++) {
      a[i * N + j] = rank * rows + i;
      part[i] += a[i * N + j] * x[j];
    }
  }
  MPI_Gather(part, rows, MPI_DOUBLE, y, rows, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("y[1] = %g\n", y[1]);
  }
  free(a);
  free(part);
  MPI_Finalize();
  return 0;
}
