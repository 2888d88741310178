// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Every rank learns the number of every other.
int main(int argc, char **argv) {
  int rank, size, i, value, sum = 0;
  int *values;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  values = malloc(size * sizeof(int));
  value = rank + 1;
  MPI_Allgather(&value, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD);
  for (i = 0; i < size; i++) {
    sum += values[i];
  }
  printf("rank %d: sum %d\n", rank, sum);
  free(values);
  MPI_Finalize();
  return 0;
}
