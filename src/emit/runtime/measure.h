// SPDX-License-Identifier: Apache-2.0
/// Times of each different work and exchange of a plan alone, as rows of CSV:
///
///   what,members,batch,m,n,k,bytes,seconds
///   step                  median over the steps, each as long as its slowest rank
///   gemm, stream, loop    one work, on all ranks at once; bytes that a stream reads and writes
///   all_reduce, ...       one collective of that many members; bytes as nccl-tests counts them
///   message               half of a round trip between ranks 0 and 1
///
/// Seconds are medians over as many batches as there were steps, of the slowest rank: of works 200
/// us or more each; of exchanges one, with buffers that are in no cache, where the plan has works
/// that move memory. Exchanges take turns with the buffers that those of the step have. Rank 0
/// writes.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "emit/runtime/plan.h"

namespace plan {

/// Rank: compute(Work), exchange(Call), size_of(group).
template <class Rank>
class Measurements {
 public:
  Measurements(Rank& self, const std::string& file, int rank)
      : self_(self), file_(rank == 0 ? std::fopen(file.c_str(), "w") : nullptr), rank_(rank) {}
  ~Measurements() {
    if (file_ != nullptr) {
      std::fclose(file_);
    }
  }
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  void write(double step, int batches) {
    batches_ = batches;
    collect();
    if (file_ != nullptr) {
      std::fprintf(file_, "what,members,batch,m,n,k,bytes,seconds\n");
    }
    row("step", ranks, {}, 0, step);
    for (const Work& work : works_) {
      const double seconds = median([&] { self_.compute(work); }, false);
      row(work.batch > 0   ? "gemm"
          : work.bytes > 0 ? "stream"
                           : "loop",
          1, work, work.bytes, seconds);
    }
    for (const Call& call : collectives_) {
      write_collective(call);
    }
    for (const std::int64_t elements : messages_) {
      write_message(elements);
    }
  }

 private:
  static bool same(const Call& a, const Call& b) {
    return a.kind == b.kind && a.group == b.group && a.elements == b.elements;
  }

  template <class T, class Same>
  static void add(std::vector<T>& all, const T& one, Same is_same) {
    if (std::none_of(all.begin(), all.end(), [&](const T& other) { return is_same(one, other); })) {
      all.push_back(one);
    }
  }

  /// Every rank finds the same, in the same order.
  void collect() {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Call& call : calls_of(rank)) {
        for (const Work& work : call.works) {
          add(works_, work, [](const Work& a, const Work& b) { return a == b; });
        }
        if (call.kind == Kind::send) {
          add(messages_, call.elements, [](std::int64_t a, std::int64_t b) { return a == b; });
        } else if (call.kind != Kind::receive && call.kind != Kind::compute) {
          add(collectives_, call, same);
        }
      }
    }
  }

  /// Kernels of a step that move memory leave no buffer of an exchange in a cache; loops do.
  bool moves_memory() const {
    return std::any_of(works_.begin(), works_.end(),
                       [](const Work& work) { return work.batch > 0 || work.bytes > 0; });
  }

  /// Median over batches of the slowest rank's mean time of a call. `cold`: a call at a time, after
  /// memory has passed through the caches.
  template <class Run>
  double median(Run run, bool cold) {
    constexpr double kBatch = 200e-6;
    constexpr std::int64_t kPassed = 128 << 20;
    run();  // pages, and connections that MPI opens when they are first used
    double begin = MPI_Wtime();
    run();
    double once = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const int most = once > 0 ? static_cast<int>(std::min(kBatch / once, 1000.0)) + 1 : 1000;
    const int calls = cold ? 1 : most;
    std::vector<double> seconds;
    for (int batch = 0; batch < batches_; ++batch) {
      if (cold) {
        self_.compute({0, 0, 0, 0, kPassed, 0});
      }
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
      for (int i = 0; i < calls; ++i) {
        run();
      }
      seconds.push_back((MPI_Wtime() - begin) / calls);
    }
    MPI_Allreduce(MPI_IN_PLACE, seconds.data(), batches_, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  void write_collective(const Call& call) {
    constexpr std::array kNames{"",           "all_reduce", "all_gather", "reduce_scatter",
                                "all_to_all", "broadcast",  "send_recv"};
    const int own = self_.size_of(call.group);
    int members = own;
    MPI_Allreduce(MPI_IN_PLACE, &members, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const bool sharded = call.kind == Kind::all_gather || call.kind == Kind::reduce_scatter ||
                         call.kind == Kind::all_to_all;
    std::vector<int> places;  // in the own list, each with buffers of its own
    for (int i = 0; i < static_cast<int>(calls_of(rank_).size()); ++i) {
      if (same(calls_of(rank_)[static_cast<std::size_t>(i)], call)) {
        places.push_back(i);
      }
    }
    std::size_t turn = 0;
    const double seconds = median(
        [&] {
          if (own > 0) {
            self_.exchange(call, places.empty() ? -1 : places[turn++ % places.size()]);
          }
        },
        moves_memory());
    row(kNames[static_cast<std::size_t>(call.kind)], members, {},
        8 * call.elements * (sharded ? members : 1), seconds);
  }

  void write_message(std::int64_t elements) {
    std::vector<std::uint64_t> buffer(static_cast<std::size_t>(elements));
    const int count = static_cast<int>(elements);
    const int peer = 1 - rank_;
    const double seconds = median(
        [&] {
          for (int turn = 0; turn < 2 && rank_ < 2; ++turn) {
            if (turn == rank_) {
              PMPI_Send(buffer.data(), count, MPI_UINT64_T, peer, 0, MPI_COMM_WORLD);
            } else {
              PMPI_Recv(buffer.data(), count, MPI_UINT64_T, peer, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
            }
          }
        },
        moves_memory());
    row("message", 2, {}, 8 * elements, seconds / 2);
  }

  void row(const char* what, int members, const Work& work, std::int64_t bytes, double seconds) {
    if (file_ != nullptr) {
      std::fprintf(file_, "%s,%d,%lld,%lld,%lld,%lld,%lld,%.6g\n", what, members,
                   static_cast<long long>(work.batch), static_cast<long long>(work.m),
                   static_cast<long long>(work.n), static_cast<long long>(work.k),
                   static_cast<long long>(bytes), seconds);
    }
  }

  Rank& self_;
  std::FILE* file_;
  int rank_;
  int batches_ = 1;
  std::vector<Work> works_;
  std::vector<Call> collectives_;
  std::vector<std::int64_t> messages_;
};

}  // namespace plan
