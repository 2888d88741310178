// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Rank 0 scatters numbers, every rank doubles its own, rank 0 gathers them.
int main(int argc, char **argv) {
  int rank, size, i, count = 4;
  int *all = NULL, *part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  part = malloc(count * sizeof(int));
  if (rank == 0) {
    all = malloc(count * size * sizeof(int));
    for (i = 0; i < count * size; i++) {
      all[i] = i;
    }
  }
  MPI_Scatter(all, count, MPI_INT, part, count, MPI_INT, 0, MPI_COMM_WORLD);
  for (i = 0; i < count; i++) {
    part[i] *= 2;
  }
  MPI_Gather(part, count, MPI_INT, all, count, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    for (i = 0; i < count * size; i++) {
      printf("%d ", all[i]);
    }
    printf("\n");
  }
  free(all);
  free(part);
  MPI_Finalize();
  return 0;
}
