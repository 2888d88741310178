// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// Rank 0 gives every worker a number and receives its square.
int main(int argc, char **argv) {
  int rank, size, i, task, answer;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    for (i = 1; i < size; i++) {
      task = 10 * i;
      MPI_Send(&task, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    }
    for (i = 1; i < size; i++) {
      MPI_Recv(&answer, 1, MPI_INT, i, 0, MPI_COMM_WORLD, &status);
      printf("worker %d: %d\n", i, answer);
    }
  } else {
    MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
    answer = task * task;
    MPI_Send(&answer, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
