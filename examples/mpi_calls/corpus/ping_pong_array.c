// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// An array goes to and fro between ranks 0 and 1, longer each time.
int main(int argc, char **argv) {
  int rank, size, i, count;
  double start, stop;
  double *buffer;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (count = 1; count <= 4096; count *= 8) {
    buffer = malloc(count * sizeof(double));
    for (i = 0; i < count; i++) {
      buffer[i] = i;
    }
    start = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(buffer, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &status);
    } else if (rank == 1) {
      MPI_Recv(buffer, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &status);
      MPI_Send(buffer, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
    stop = MPI_Wtime();
    if (rank == 0) {
      printf("%d doubles: %g us\n", count, 1e6 * (stop - start));
    }
    free(buffer);
  }
  MPI_Finalize();
  return 0;
}
