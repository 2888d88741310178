// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define N 240

// A dot product of vectors that every rank has a part of; all ranks know the result.
int main(int argc, char **argv) {
  int rank, size, i, count;
  double a[N], b[N], local = 0.0, dot;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  count = N / size;
  for (i = 0; i < count; i++) {
    a[i] = 1.0;
    b[i] = rank + 1;
  }
  for (i = 0; i < count; i++) {
    local += a[i] * b[i];
  }
  MPI_Allreduce(&local, &dot, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: dot product %g\n", rank, dot);
  MPI_Finalize();
  return 0;
}
