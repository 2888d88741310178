// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define TASKS 20
#define STOP -1

// Whoever is done gets the next task; a task of -1 ends a worker.
int main(int argc, char **argv) {
  int rank, size, i, task, answer, next = 0, sum = 0;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    for (i = 1; i < size; i++) {
      task = next++;
      MPI_Send(&task, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    }
    for (i = 0; i < TASKS; i++) {
      MPI_Recv(&answer, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
      sum += answer;
      task = next < TASKS ? next++ : STOP;
      MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
    }
    printf("sum %d\n", sum);
  } else {
    MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
    while (task != STOP) {
      answer = task * task;
      MPI_Send(&answer, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
    }
  }
  MPI_Finalize();
  return 0;
}
