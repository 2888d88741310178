// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define CELLS 32

// Heat along a rod: every rank has a part of it and a cell of each neighbour.
int main(int argc, char **argv) {
  int rank, size, i, step, left, right;
  double u[CELLS + 2], next[CELLS + 2];
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (i = 0; i < CELLS + 2; i++) {
    u[i] = rank == 0 && i == 0 ? 100.0 : 0.0;
  }
  for (step = 0; step < 50; step++) {
    MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 0, &u[CELLS + 1], 1, MPI_DOUBLE, right, 0,
                 MPI_COMM_WORLD, &status);
    MPI_Sendrecv(&u[CELLS], 1, MPI_DOUBLE, right, 1, &u[0], 1, MPI_DOUBLE, left, 1,
                 MPI_COMM_WORLD, &status);
    for (i = 1; i <= CELLS; i++) {
      next[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
    }
    for (i = 1; i <= CELLS; i++) {
      u[i] = next[i];
    }
  }
  printf("rank %d: %g\n", rank, u[1]);
  MPI_Finalize();
  return 0;
}
