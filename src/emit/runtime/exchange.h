// SPDX-License-Identifier: Apache-2.0
/// One exchange of a plan, and the numbers that it moves.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "emit/runtime/plan.h"

namespace plan {

using Buffer = std::vector<std::uint64_t>;
inline constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

/// Returns a number that differs for each exchange and sender (splitmix64).
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = (a * 0x100000001b3 + b) * 0x100000001b3 + c + kStep;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111eb;
  return x ^ (x >> 31U);
}

struct Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  int size = 1;
  int place = 0;
  std::uint64_t calls = 0;
};

struct Exchange {
  Kind kind = Kind::compute;
  const Communicator* group = nullptr;
  std::uint64_t number = 0;  ///< of its communicator's collectives, or of a pair's messages
  std::uint64_t key = 0;
  int sender = 0;    ///< of a message
  int receiver = 0;  ///< of a message
  double entered = 0;
  double start = 0;     ///< seconds of the call that started it, where they are measured
  double computed = 0;  ///< processor seconds of work since the collective before
  Buffer out;
  Buffer in;
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  bool open = false;
};

/// Pause is how a rank waits between two looks at an exchange. Where a host has more ranks than
/// cores it sleeps, so that another rank has the core, and a pair on one core takes about as long
/// as one on two.
class Pause {
 public:
  Pause() {
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    int ranks = 0;
    MPI_Comm_size(host, &ranks);
    MPI_Comm_free(&host);
    asleep_ = ranks > static_cast<int>(std::thread::hardware_concurrency()) ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &asleep_, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }

  void between_looks() const {
    if (asleep_ != 0) {
      std::this_thread::sleep_for(kSleep);
    } else {
      std::this_thread::yield();
    }
  }

  /// Returns by how much a message may come later because nobody looks, in seconds: a sleep, which
  /// Linux makes up to as much longer. 0 where ranks look all the time.
  double resolution() const {
    return asleep_ != 0 ? 2 * std::chrono::duration<double>(kSleep).count() : 0;
  }

 private:
  static constexpr std::chrono::microseconds kSleep{50};
  int asleep_ = 0;
};

/// Element i of what `sender` gives to an exchange.
inline std::uint64_t value(const Exchange& exchange, int sender, std::size_t i) {
  return mixed(exchange.key, exchange.number, static_cast<std::uint64_t>(sender)) + i * kStep;
}

inline void fill(Exchange& exchange, int sender) {
  for (std::size_t i = 0; i < exchange.out.size(); ++i) {
    exchange.out[i] = value(exchange, sender, i);
  }
}

/// Element i of what must arrive.
inline std::uint64_t expected(const Exchange& exchange, std::size_t i) {
  if (exchange.group == nullptr) {
    return value(exchange, exchange.sender, i);
  }
  const Communicator& group = *exchange.group;
  const std::size_t one = exchange.in.size() / static_cast<std::size_t>(group.size);
  const auto place = static_cast<std::size_t>(group.place);
  std::uint64_t sum = 0;
  switch (exchange.kind) {
    case Kind::all_gather:
      return value(exchange, static_cast<int>(i / one), i % one);
    case Kind::all_to_all:
      return value(exchange, static_cast<int>(i / one), place * one + i % one);
    case Kind::broadcast:
      return value(exchange, 0, i);
    case Kind::ring_shift:
      return value(exchange, (group.place + group.size - 1) % group.size, i);
    default:
      for (int member = 0; member < group.size; ++member) {
        const std::size_t shard =
            exchange.kind == Kind::reduce_scatter ? place * exchange.in.size() : 0;
        sum += value(exchange, member, shard + i);
      }
      return sum;
  }
}

/// Sums pass through memory that MPI allocates for each of them. Given back to the system, its
/// pages are new each time, which on a virtual machine takes up to twenty times as long as the sum.
inline void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

}  // namespace plan
