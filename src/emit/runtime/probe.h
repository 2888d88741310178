// SPDX-License-Identifier: Apache-2.0
/// Messages between all pairs of ranks, a pair at a time, for who looks for a slow link.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "emit/runtime/arguments.h"
#include "emit/runtime/telemetry.h"

namespace plan {

class Probe {
 public:
  Probe(Telemetry& telemetry, const Arguments& arguments, int rank, int ranks)
      : telemetry_(telemetry), arguments_(arguments), rank_(rank), ranks_(ranks) {}

  /// Writes half of each round trip as a message. The pairs take turns, so that what else the host
  /// does for a while meets messages of many pairs, not all of one. Ranks outside the pair sleep:
  /// there may be fewer cores than ranks.
  void run() {
    for (int i = 0; i < arguments_.probes; ++i) {
      for (int source = 0; source < ranks_; ++source) {
        for (int target = 0; target < ranks_; ++target) {
          if (source != target) {
            exchange(source, target);
          }
        }
      }
    }
  }

 private:
  /// Two round trips: the first, which opens a connection and wakes the pair, is not written.
  void exchange(int source, int target) {
    for (const bool counts : {false, true}) {
      if (rank_ == source) {
        ask(target, counts);
      } else if (rank_ == target) {
        receive(source);
        send(source);
      }
    }
    wait_asleep();
  }

  void ask(int target, bool counts) {
    const double begin = MPI_Wtime();
    send(target);
    receive(target);
    const double trip = MPI_Wtime() - begin;
    if (counts) {
      telemetry_.message(rank_, target, sizeof(std::uint64_t) * buffer_.size(), begin,
                         begin + trip / 2);
    }
  }

  void send(int target) {
    PMPI_Send(buffer_.data(), count(), MPI_UINT64_T, target, 0, MPI_COMM_WORLD);
  }

  /// A link is slow where what it carries comes late.
  void receive(int source) {
    PMPI_Recv(buffer_.data(), count(), MPI_UINT64_T, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (source == arguments_.delayed_source && rank_ == arguments_.delayed_target) {
      std::this_thread::sleep_for(std::chrono::microseconds(arguments_.delay_us));
    }
  }

  void wait_asleep() {
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int done = 0; done == 0;) {
      MPI_Test(&all, &done, MPI_STATUS_IGNORE);
      if (done == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  int count() const { return static_cast<int>(buffer_.size()); }

  Telemetry& telemetry_;
  const Arguments& arguments_;
  int rank_;
  int ranks_;
  std::vector<std::uint64_t> buffer_ = std::vector<std::uint64_t>(8192);  ///< 64 KiB
};

}  // namespace plan
