// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// The same sum with messages: rank 0 receives every part.
int main(int argc, char **argv) {
  int rank, size, i, n = 1000;
  long sum = 0, part;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = rank + 1; i <= n; i += size) {
    sum += i;
  }
  if (rank == 0) {
    for (i = 1; i < size; i++) {
      MPI_Recv(&part, 1, MPI_LONG, i, 0, MPI_COMM_WORLD, &status);
      sum += part;
    }
    printf("total %ld\n", sum);
  } else {
    MPI_Send(&sum, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
