// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// How many items come before those of each rank.
int main(int argc, char **argv) {
  int rank, size, items, before;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  items = 3 * rank + 1;
  MPI_Scan(&items, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  before -= items;
  printf("rank %d of %d: %d items behind %d\n", rank, size, items, before);
  MPI_Finalize();
  return 0;
}
