// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// Even and odd ranks sum apart, each in a communicator of its own.
int main(int argc, char **argv) {
  int rank, size, value, sum;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  value = rank;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, half);
  printf("rank %d of %d: sum %d\n", rank, size, sum);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
