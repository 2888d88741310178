// SPDX-License-Identifier: Apache-2.0
/// Messages between all pairs of ranks, a pair at a time, for who looks for a slow link.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "emit/runtime/arguments.h"
#include "emit/runtime/exchange.h"
#include "emit/runtime/telemetry.h"

namespace plan {

class Probe {
 public:
  Probe(Telemetry& telemetry, const Arguments& arguments, const Pause& pause)
      : telemetry_(telemetry), arguments_(arguments), pause_(pause) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  /// Writes half of the shortest of some round trips as a message of either direction, since a
  /// trip takes both. The pairs take turns, so that what else the host does for a while meets
  /// messages of many pairs, not all of one. Ranks outside the pair sleep: there may be fewer cores
  /// than ranks.
  void run() {
    for (int i = 0; i < arguments_.probes; ++i) {
      for (int source = 0; source < ranks_; ++source) {
        for (int target = source + 1; target < ranks_; ++target) {
          exchange(source, target);
        }
      }
    }
  }

 private:
  /// A trip takes longer where a rank of the pair has lost its core, which says nothing of the
  /// link; the first also wakes the pair, and may open a connection. A slow link is slow each time.
  void exchange(int source, int target) {
    constexpr int kTrips = 10;
    double shortest = -1;
    double begin = 0;
    for (int trip = 0; trip < kTrips && (rank_ == source || rank_ == target); ++trip) {
      if (rank_ == target) {
        receive(source);
        send(source);
        continue;
      }
      const double sent = MPI_Wtime();
      send(target);
      receive(target);
      if (const double took = MPI_Wtime() - sent; shortest < 0 || took < shortest) {
        begin = sent;
        shortest = took;
      }
    }
    if (rank_ == source) {
      const std::uint64_t bytes = sizeof(std::uint64_t) * buffer_.size();
      const double end = begin + shortest / 2;
      telemetry_.message(rank_, target, bytes, begin, end, pause_.resolution());
      telemetry_.message(target, rank_, bytes, begin, end, pause_.resolution());
    }
    wait_asleep();
  }

  void send(int target) {
    MPI_Request sent = MPI_REQUEST_NULL;
    PMPI_Isend(buffer_.data(), count(), MPI_UINT64_T, target, 0, MPI_COMM_WORLD, &sent);
    await(sent);
  }

  /// A link is slow where what it carries comes late.
  void receive(int source) {
    MPI_Request received = MPI_REQUEST_NULL;
    PMPI_Irecv(buffer_.data(), count(), MPI_UINT64_T, source, 0, MPI_COMM_WORLD, &received);
    await(received);
    if (source == arguments_.delayed_source && rank_ == arguments_.delayed_target) {
      std::this_thread::sleep_for(std::chrono::microseconds(arguments_.delay_us));
    }
  }

  void await(MPI_Request& request) const {
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done == 0) {
        pause_.between_looks();
      }
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
  const Pause& pause_;
  int rank_ = 0;
  int ranks_ = 1;
  std::vector<std::uint64_t> buffer_ = std::vector<std::uint64_t>(8192);  ///< 64 KiB
};

}  // namespace plan
