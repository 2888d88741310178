// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define N 24

double a[N][N], b[N][N], c[N][N], part[N][N], result[N][N];

// C = A B: rows of A scattered, B broadcast, rows of C gathered.
int main(int argc, char **argv) {
  int rank, size, i, j, k, rows;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rows = N / size;
  if (rank == 0) {
    for (i = 0; i < N; i++) {
      for (j = 0; j < N; j++) {
        a[i][j] = i + j;
        b[i][j] = i == j;
      }
    }
  }
  MPI_Scatter(a, rows * N, MPI_DOUBLE, part, rows * N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Bcast(b, N * N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (i = 0; i < rows; i++) {
    for (j = 0; j < N; j++) {
      result[i][j] = 0.0;
      for (k = 0; k < N; k++) {
        result[i][j] += part[i][k] * b[k][j];
      }
    }
  }
  MPI_Gather(result, rows * N, MPI_DOUBLE, c, rows * N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("c[1][2] = %g\n", c[1][2]);
  }
  MPI_Finalize();
  return 0;
}
