// SPDX-License-Identifier: Apache-2.0
/// A program of MPI alone, for two ranks, that prints a digest of all bytes which it receives: the
/// same under the preload library as without, whatever that library takes over.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using Buffer = std::vector<unsigned char>;
std::uint64_t digest = 14695981039346656037U;  // FNV-1a

void add(const Buffer& buffer) {
  for (const unsigned char byte : buffer) {
    digest = (digest ^ byte) * 1099511628211U;
  }
}

void add(int number) {
  Buffer bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  add(bytes);
}

Buffer pattern(std::size_t size, unsigned seed) {
  Buffer buffer(size);
  for (std::size_t i = 0; i < size; ++i) {
    buffer[i] = static_cast<unsigned char>((i * 2654435761U + seed) >> 11U);
  }
  return buffer;
}

MPI_Datatype vector_of(int count, int length, int stride, MPI_Datatype old) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, length, stride, old, &made);
  MPI_Type_commit(&made);
  return made;
}

/// Rank 0 sends `count` elements; rank 1 receives up to `room` and says how much has come.
void message(int rank, MPI_Datatype sent, int count, MPI_Datatype received, int room) {
  constexpr std::size_t kSize = 1U << 20U;
  if (rank == 0) {
    const Buffer from = pattern(kSize, 5);
    MPI_Send(from.data(), count, sent, 1, 7, MPI_COMM_WORLD);
    return;
  }
  Buffer to = pattern(kSize, 9);
  MPI_Status status;
  MPI_Recv(to.data(), room, received, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  int whole = 0;
  int basic = 0;
  MPI_Get_count(&status, received, &whole);
  MPI_Get_elements(&status, received, &basic);
  add(to);
  add(whole);
  add(basic);
  add(status.MPI_SOURCE);
  add(status.MPI_TAG);
}

void packing(MPI_Datatype type, int count) {
  Buffer from = pattern(1U << 20U, 3);
  int bytes = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
  Buffer packed(static_cast<std::size_t>(bytes) + 8);
  int position = 0;
  MPI_Pack(&count, 1, MPI_INT, packed.data(), bytes + 8, &position, MPI_COMM_SELF);
  MPI_Pack(from.data(), count, type, packed.data(), bytes + 8, &position, MPI_COMM_SELF);
  add(position);
  add(packed);
  Buffer to = pattern(1U << 20U, 4);
  int first = 0;
  position = 0;
  MPI_Unpack(packed.data(), bytes + 8, &position, &first, 1, MPI_INT, MPI_COMM_SELF);
  MPI_Unpack(packed.data(), bytes + 8, &position, to.data(), count, type, MPI_COMM_SELF);
  add(first);
  add(to);
}

void run(int rank) {
  for (int round = 0; round < 3; ++round) {  // handles are freed and may come again as other types
    MPI_Datatype doubles = vector_of(64, 2, 5 + round, MPI_DOUBLE);
    MPI_Datatype bytes = vector_of(1024, 1 + round, 8, MPI_BYTE);
    MPI_Datatype ints = vector_of(16, 3, 4, MPI_INT);
    packing(doubles, 3);
    packing(bytes, 1);
    message(rank, doubles, 8, doubles, 8);
    message(rank, doubles, 3, doubles, 8);       // shorter than the receive allows
    message(rank, ints, 1, doubles, 2);          // 48 ints: part of an element
    message(rank, MPI_DOUBLE, 128, doubles, 1);  // contiguous becomes strided
    message(rank, bytes, 1, MPI_BYTE, 1024 * (1 + round));
    message(rank, doubles, 0, doubles, 1);
    MPI_Type_free(&ints);
    MPI_Type_free(&bytes);
    MPI_Type_free(&doubles);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  run(rank);
  std::uint64_t other = 0;
  if (rank == 1) {
    MPI_Send(&digest, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&other, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf("%016llx %016llx\n", static_cast<unsigned long long>(digest),
                static_cast<unsigned long long>(other));
  }
  MPI_Finalize();
  return 0;
}
