// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#define CELLS 16

// Jacobi iteration along a line until all ranks have converged.
int main(int argc, char **argv) {
  int rank, size, i, step, left, right;
  double u[CELLS + 2], next[CELLS + 2], change, greatest;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (i = 0; i < CELLS + 2; i++) {
    u[i] = 0.0;
  }
  for (step = 0; step < 200; step++) {
    MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 0, &u[CELLS + 1], 1, MPI_DOUBLE, right, 0,
                 MPI_COMM_WORLD, &status);
    MPI_Sendrecv(&u[CELLS], 1, MPI_DOUBLE, right, 1, &u[0], 1, MPI_DOUBLE, left, 1,
                 MPI_COMM_WORLD, &status);
    change = 0.0;
    for (i = 1; i <= CELLS; i++) {
      next[i] = 0.5 * (u[i - 1] + u[i + 1] + 0.01);
      change = fmax(change, fabs(next[i] - u[i]));
    }
    for (i = 1; i <= CELLS; i++) {
      u[i] = next[i];
    }
    MPI_Allreduce(&change, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (greatest < 1e-4) {
      break;
    }
  }
  if (rank == 0) {
    printf("%d steps, change %g\n", step, greatest);
  }
  MPI_Finalize();
  return 0;
}
