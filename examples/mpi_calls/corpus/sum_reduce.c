// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// The sum of 1 to 1000, a part on every rank.
int main(int argc, char **argv) {
  int rank, size, i, n = 1000;
  long sum = 0, total = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = rank + 1; i <= n; i += size) {
    sum += i;
  }
  MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("total %ld\n", total);
  }
  MPI_Finalize();
  return total == 500500 || rank != 0 ? 0 : 1;
}
