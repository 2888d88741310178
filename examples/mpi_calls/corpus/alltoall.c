// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// A transpose: number i of rank j becomes number j of rank i.
int main(int argc, char **argv) {
  int rank, size, i;
  int *out, *in;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = malloc(size * sizeof(int));
  in = malloc(size * sizeof(int));
  for (i = 0; i < size; i++) {
    out[i] = 10 * rank + i;
  }
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  for (i = 0; i < size; i++) {
    printf("rank %d: %d\n", rank, in[i]);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
