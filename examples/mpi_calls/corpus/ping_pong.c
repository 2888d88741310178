// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define ROUNDS 100

// A number goes to and fro between ranks 0 and 1; the time of a round trip.
int main(int argc, char **argv) {
  int rank, size, i, ball = 0;
  double start, stop;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  start = MPI_Wtime();
  for (i = 0; i < ROUNDS; i++) {
    if (rank == 0) {
      ball++;
      MPI_Send(&ball, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&ball, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &status);
    } else if (rank == 1) {
      MPI_Recv(&ball, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
      ball++;
      MPI_Send(&ball, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
  }
  stop = MPI_Wtime();
  if (rank == 0) {
    printf("%d bounces, %g us each\n", ball, 1e6 * (stop - start) / ROUNDS);
  }
  MPI_Finalize();
  return 0;
}
