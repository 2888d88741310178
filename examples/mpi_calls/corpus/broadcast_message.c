// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <string.h>

// A text from rank 0 to all: its length first.
int main(int argc, char **argv) {
  int rank, size, length = 0;
  char text[64] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    strcpy(text, "good morning");
    length = strlen(text) + 1;
  }
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(text, length, MPI_CHAR, 0, MPI_COMM_WORLD);
  printf("rank %d of %d: %s\n", rank, size, text);
  MPI_Finalize();
  return 0;
}
