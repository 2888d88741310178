// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BINS 8

// A histogram of random numbers of all ranks.
int main(int argc, char **argv) {
  int rank, size, i, local[BINS] = {0}, total[BINS];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  srand(rank + 1);
  for (i = 0; i < 1000; i++) {
    local[rand() % BINS]++;
  }
  MPI_Reduce(local, total, BINS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    for (i = 0; i < BINS; i++) {
      printf("%d: %d\n", i, total[i]);
    }
  }
  MPI_Finalize();
  return 0;
}
