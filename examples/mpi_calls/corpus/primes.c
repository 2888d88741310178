// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

static int is_prime(int n) {
  int i;
  for (i = 2; i * i <= n; i++) {
    if (n % i == 0) {
      return 0;
    }
  }
  return n > 1;
}

// How many primes there are below 10,000.
int main(int argc, char **argv) {
  int rank, size, i, n = 10000, count = 0, total;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (i = rank; i < n; i += size) {
    count += is_prime(i);
  }
  MPI_Reduce(&count, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d primes\n", total);
  }
  MPI_Finalize();
  return 0;
}
