// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// The greatest random number of all ranks.
int main(int argc, char **argv) {
  int rank, size, i, local = 0, greatest, value;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  srand(rank + 1);
  for (i = 0; i < 100; i++) {
    value = rand() % 10000;
    if (value > local) {
      local = value;
    }
  }
  MPI_Reduce(&local, &greatest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("greatest %d\n", greatest);
  }
  MPI_Finalize();
  return 0;
}
