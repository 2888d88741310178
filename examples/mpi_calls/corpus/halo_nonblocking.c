// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

#define CELLS 16

// Cells of both neighbours, sent and received without waiting in between.
int main(int argc, char **argv) {
  int rank, size, i, left, right;
  double u[CELLS + 2];
  MPI_Request requests[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (i = 1; i <= CELLS; i++) {
    u[i] = rank * CELLS + i;
  }
  MPI_Irecv(&u[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&u[CELLS + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&u[CELLS], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&u[1], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  printf("rank %d: %g %g\n", rank, u[0], u[CELLS + 1]);
  MPI_Finalize();
  return 0;
}
