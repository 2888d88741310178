// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <mpi.h>
#include <stdio.h>

// Pi as an integral: every rank sums its part of the intervals.
int main(int argc, char **argv) {
  int rank, size, i, n = 100000;
  double h, x, sum = 0.0, mypi, pi;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  h = 1.0 / n;
  for (i = rank + 1; i <= n; i += size) {
    x = h * (i - 0.5);
    sum += 4.0 / (1.0 + x * x);
  }
  mypi = h * sum;
  MPI_Reduce(&mypi, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("pi is about %.10f, error %g\n", pi, fabs(pi - 3.141592653589793));
  }
  MPI_Finalize();
  return 0;
}
