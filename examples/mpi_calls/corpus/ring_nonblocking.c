// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>

// Every rank hands its number to the right while it receives from the left.
int main(int argc, char **argv) {
  int rank, size, left, right, value, received;
  MPI_Request requests[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  value = rank * rank;
  MPI_Irecv(&received, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&value, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  printf("rank %d received %d\n", rank, received);
  MPI_Finalize();
  return 0;
}
