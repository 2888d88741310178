// SPDX-License-Identifier: Apache-2.0
/// orrery-measure: what `orrery measure` starts on the ranks of an MPI job. Rank 0 prints
/// comma-separated rows under a header; exit status 1 where bytes differ from MPI's.
///
///   orrery-measure pack ROUNDS         1 rank: MPI_Pack and MPI_Unpack against the packer
///   orrery-measure send ROUNDS [FILE]  2 ranks: one way of each method, and what the model chooses
///                                      by a profile, in which the caller has found no mistake
///   orrery-measure profile ROUNDS      2 ranks: the tables that the model reads
///   orrery-measure p2p ROUNDS          2 ranks: one way of plain bytes
///   orrery-measure collectives ROUNDS  any number: collectives by size
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mpi/tempi/clock.h"
#include "mpi/tempi/from_mpi.h"
#include "mpi/tempi/shapes.h"
#include "mpi/tempi/transfer.h"

namespace orrery::tempi {
namespace {

using datatype::Method;
using Buffer = std::vector<std::byte>;
constexpr std::array kMethods{Method::library, Method::packed, Method::pipelined};

int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Returns bytes that differ from their neighbours, as many as the shape reaches.
Buffer filled(const Shape& shape, unsigned seed) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(shape.type, &lower, &extent);
  Buffer buffer(static_cast<std::size_t>(lower + extent * shape.count));
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 7U);
  }
  return buffer;
}

struct Packing {
  double library = 0;
  double ours = 0;
};

/// Returns the least of each, measured in turn so that what else the host does meets both.
template <class Library, class Ours>
Packing in_turn(int rounds, Library&& library, Ours&& ours) {
  const int library_calls = calls_of_batch(library);
  const int our_calls = calls_of_batch(ours);
  Packing least{1e9, 1e9};
  for (int round = 0; round < rounds; ++round) {
    least.library = std::min(least.library, least_seconds(1, library_calls, library));
    least.ours = std::min(least.ours, least_seconds(1, our_calls, ours));
  }
  return least;
}

/// One row of `pack`; false where bytes differ.
bool pack_row(const Shape& shape, int rounds) {
  const auto nest = from_mpi(shape.type);
  if (!nest) {
    std::fprintf(stderr, "%s has no nest of loops\n", shape.name.c_str());
    return false;
  }
  const datatype::Packer packer(*nest, shape.count);
  Buffer typed = filled(shape, 1);
  Buffer by_library(static_cast<std::size_t>(packer.bytes()));
  Buffer by_us(by_library.size());
  const int size = static_cast<int>(packer.bytes());
  int position = 0;
  const Packing packing = in_turn(
      rounds,
      [&] {
        position = 0;
        MPI_Pack(typed.data(), shape.count, shape.type, by_library.data(), size, &position,
                 MPI_COMM_WORLD);
      },
      [&] { packer.pack(typed.data(), by_us.data()); });
  bool equal = position == size && by_library == by_us;
  Buffer target = filled(shape, 2);
  Buffer other = target;
  const Packing unpacking = in_turn(
      rounds,
      [&] {
        position = 0;
        MPI_Unpack(by_library.data(), size, &position, target.data(), shape.count, shape.type,
                   MPI_COMM_WORLD);
      },
      [&] { packer.unpack(by_us.data(), other.data()); });
  equal = equal && target == other;
  std::printf("%s,%d,%.4f,%.4f,%.4f,%.4f,%s\n", shape.name.c_str(), size, packing.library * 1e6,
              packing.ours * 1e6, unpacking.library * 1e6, unpacking.ours * 1e6,
              equal ? "true" : "false");
  return equal;
}

bool measure_pack(int rounds) {
  if (rank_of_this() != 0) {
    return true;
  }
  std::printf("type,bytes,library_us,ours_us,unpack_library_us,unpack_ours_us,equal\n");
  bool equal = true;
  for (Shape& shape : measured_shapes()) {
    equal = pack_row(shape, rounds) && equal;
    MPI_Type_free(&shape.type);
  }
  return equal;
}

/// Half of the least round trip, the same on both ranks: the slower rank's clock counts.
template <class Send, class Receive>
double one_way(int rounds, Send&& send, Receive&& receive) {
  const bool first = rank_of_this() == 0;
  const auto trip = [&] {
    if (first) {
      send();
      receive();
    } else {
      receive();
      send();
    }
  };
  int calls = calls_of_batch(trip);
  MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
  double seconds = least_seconds(rounds, calls, trip) / 2;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

/// calls_of_batch() runs a trip three times: both ranks do, so messages match.
double typed_one_way(Transfer& transfer, Method method, Buffer& buffer, int rounds) {
  const int peer = 1 - rank_of_this();
  return one_way(
      rounds, [&] { transfer.send(method, buffer.data(), peer); },
      [&] { transfer.receive(method, buffer.data(), peer); });
}

double plain_one_way(std::int64_t bytes, int rounds) {
  Buffer buffer(static_cast<std::size_t>(bytes));
  const int peer = 1 - rank_of_this();
  return one_way(
      rounds,
      [&] { MPI_Send(buffer.data(), static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD); },
      [&] {
        MPI_Recv(buffer.data(), static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      });
}

bool measure_send(int rounds, const char* file) {
  const datatype::Profile profile =
      file == nullptr ? datatype::Profile() : datatype::load_profile(file).profile;
  const bool prints = rank_of_this() == 0;
  if (prints) {
    std::printf("type,bytes,block,library_us,packed_us,pipelined_us,chosen,chosen_us,regret\n");
  }
  for (Shape& shape : measured_shapes()) {
    Transfer transfer(shape.type, shape.count,
                      datatype::Packer(*from_mpi(shape.type), shape.count));
    Buffer buffer = filled(shape, 3);
    std::array<double, 3> seconds{};
    for (std::size_t i = 0; i < kMethods.size(); ++i) {
      seconds[i] = typed_one_way(transfer, kMethods[i], buffer, rounds);
    }
    const datatype::Packer& packer = transfer.packer();
    const auto chosen =
        static_cast<std::size_t>(profile.best(packer.bytes(), packer.block(), true));
    if (prints) {
      std::printf("%s,%lld,%lld,%.3f,%.3f,%.3f,%s,%.3f,%.4f\n", shape.name.c_str(),
                  static_cast<long long>(packer.bytes()), static_cast<long long>(packer.block()),
                  seconds[0] * 1e6, seconds[1] * 1e6, seconds[2] * 1e6,
                  std::string(datatype::kMethodNames[chosen]).c_str(), seconds[chosen] * 1e6,
                  seconds[chosen] / *std::min_element(seconds.begin(), seconds.end()) - 1);
    }
    MPI_Type_free(&shape.type);
  }
  return true;
}

/// Blocks of `block` bytes, half of the places taken; one block where the message is no longer.
Shape half_full(std::int64_t bytes, std::int64_t block) {
  Shape shape{"half_full"};
  const auto length = static_cast<int>(std::min(bytes, block));
  MPI_Type_vector(static_cast<int>(bytes / length), length, 2 * length, MPI_BYTE, &shape.type);
  MPI_Type_commit(&shape.type);
  return shape;
}

void print_row(const char* kind, std::int64_t bytes, std::int64_t block, double seconds) {
  if (rank_of_this() == 0) {
    std::printf("%s,%lld,%lld,%.4g\n", kind, static_cast<long long>(bytes),
                static_cast<long long>(block), seconds);
  }
}

void profile_cell(std::int64_t bytes, std::int64_t block, int rounds) {
  Shape shape = half_full(bytes, block);
  Transfer transfer(shape.type, 1, datatype::Packer(*from_mpi(shape.type), 1));
  Buffer typed = filled(shape, 4);
  Buffer packed(static_cast<std::size_t>(bytes));
  const auto pack = [&] { transfer.packer().pack(typed.data(), packed.data()); };
  const auto unpack = [&] { transfer.packer().unpack(packed.data(), typed.data()); };
  // Both ranks measure, as both pack while messages overlap.
  print_row("pack", bytes, block, least_seconds(rounds, calls_of_batch(pack), pack));
  print_row("unpack", bytes, block, least_seconds(rounds, calls_of_batch(unpack), unpack));
  print_row("library", bytes, block, typed_one_way(transfer, Method::library, typed, rounds));
  MPI_Type_free(&shape.type);
}

bool measure_profile(int rounds) {
  if (rank_of_this() == 0) {
    std::printf("kind,bytes,block,seconds\n");
  }
  constexpr int kSizes = 9;
  for (int i = 0; i < kSizes; ++i) {
    const std::int64_t bytes = std::int64_t{1} << (2 * i + 6);
    for (int j = 0; j < kSizes; ++j) {
      profile_cell(bytes, std::int64_t{1} << (2 * j), rounds);
    }
  }
  constexpr int kLargest = 23;  // 8 MiB
  for (int i = 0; i <= kLargest; ++i) {
    print_row("message", std::int64_t{1} << i, 0, plain_one_way(std::int64_t{1} << i, rounds));
  }
  return true;
}

bool measure_p2p(int rounds) {
  if (rank_of_this() == 0) {
    std::printf("collective,n_gpus,bytes,time_us,bandwidth\n");
  }
  constexpr int kLargest = 24;
  for (int i = 0; i <= kLargest; i += 2) {
    const std::int64_t bytes = std::int64_t{1} << i;
    const double seconds = plain_one_way(bytes, rounds);
    if (rank_of_this() == 0) {
      std::printf("send_recv,2,%lld,%.4f,%.4g\n", static_cast<long long>(bytes), seconds * 1e6,
                  static_cast<double>(bytes) / seconds);
    }
  }
  return true;
}

/// Least over the rounds of the slowest rank.
template <class Call>
double collective_seconds(int rounds, Call&& call) {
  int calls = calls_of_batch(call);
  MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
  double least = 1e9;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = least_seconds(1, calls, call);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    least = std::min(least, seconds);
  }
  return least;
}

/// Bytes as nccl-tests counts them: of the whole buffer, ranks x shard where there are shards.
bool measure_collectives(int rounds) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool prints = rank_of_this() == 0;
  if (prints) {
    std::printf("collective,n_gpus,bytes,time_us\n");
  }
  constexpr int kLargest = 22;
  for (int i = 10; i <= kLargest; i += 2) {
    const int shard = (1 << i) / ranks / 4;
    std::vector<float> from(static_cast<std::size_t>(shard * ranks), 1.0F);
    std::vector<float> to(from.size());
    const std::array<double, 4> seconds{
        collective_seconds(rounds,
                           [&] {
                             MPI_Allreduce(from.data(), to.data(), shard * ranks, MPI_FLOAT,
                                           MPI_SUM, MPI_COMM_WORLD);
                           }),
        collective_seconds(rounds,
                           [&] {
                             MPI_Allgather(from.data(), shard, MPI_FLOAT, to.data(), shard,
                                           MPI_FLOAT, MPI_COMM_WORLD);
                           }),
        collective_seconds(rounds,
                           [&] {
                             MPI_Reduce_scatter_block(from.data(), to.data(), shard, MPI_FLOAT,
                                                      MPI_SUM, MPI_COMM_WORLD);
                           }),
        collective_seconds(rounds, [&] {
          MPI_Alltoall(from.data(), shard, MPI_FLOAT, to.data(), shard, MPI_FLOAT, MPI_COMM_WORLD);
        })};
    constexpr std::array kNames{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
    for (std::size_t c = 0; prints && c < kNames.size(); ++c) {
      std::printf("%s,%d,%d,%.4f\n", kNames[c], ranks, shard * ranks * 4, seconds[c] * 1e6);
    }
  }
  return true;
}

bool run(const std::string& what, int rounds, const char* file) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (what == "pack") {
    return measure_pack(rounds);
  }
  if (what == "collectives") {
    return measure_collectives(rounds);
  }
  if (ranks != 2) {
    std::fprintf(stderr, "%s: found %d ranks, expected 2\n", what.c_str(), ranks);
    return false;
  }
  if (what == "send") {
    return measure_send(rounds, file);
  }
  if (what == "profile") {
    return measure_profile(rounds);
  }
  return what == "p2p" && measure_p2p(rounds);
}

}  // namespace
}  // namespace orrery::tempi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 0;
  bool good = false;
  if (rounds >= 1) {
    good = orrery::tempi::run(argv[1], rounds, argc > 3 ? argv[3] : nullptr);
  } else {
    std::fprintf(stderr, "usage: orrery-measure pack|send|profile|p2p|collectives ROUNDS [FILE]\n");
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
