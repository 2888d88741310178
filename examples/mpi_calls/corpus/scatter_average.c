// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// The mean of numbers: parts are scattered, means of parts gathered.
int main(int argc, char **argv) {
  int rank, size, i, count = 25;
  float *numbers = NULL, *part, *means = NULL, mean = 0.0f, total = 0.0f;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  part = malloc(count * sizeof(float));
  if (rank == 0) {
    numbers = malloc(count * size * sizeof(float));
    means = malloc(size * sizeof(float));
    for (i = 0; i < count * size; i++) {
      numbers[i] = i;
    }
  }
  MPI_Scatter(numbers, count, MPI_FLOAT, part, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  for (i = 0; i < count; i++) {
    mean += part[i] / count;
  }
  MPI_Gather(&mean, 1, MPI_FLOAT, means, 1, MPI_FLOAT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    for (i = 0; i < size; i++) {
      total += means[i] / size;
    }
    printf("mean %g\n", total);
  }
  free(numbers);
  free(means);
  free(part);
  MPI_Finalize();
  return 0;
}
