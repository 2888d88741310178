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
/// us or more each, of exchanges 2 ms or more; but one exchange, with buffers that are in no cache,
/// where the plan has works that move memory. Exchanges take turns with the buffers that those of
/// the step have. A batch of each follows every step: what else the host does for a while meets the
/// step and its parts alike. Rank 0 writes.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
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

  /// Runs each work and exchange twice: pages, and connections that MPI opens when they are first
  /// used; then how many make a batch.
  void prepare() {
    collect();
    for (Part& part : parts_) {
      part.run();
      const double begin = MPI_Wtime();
      part.run();
      double once = MPI_Wtime() - begin;
      MPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      const double batch = part.members > 1 ? kBatchOfExchanges : kBatch;
      const int most = once > 0 ? static_cast<int>(std::min(batch / once, 1000.0)) + 1 : 1000;
      part.calls = part.cold ? 1 : most;
    }
  }

  /// Takes one batch of each.
  void take() {
    for (Part& part : parts_) {
      if (part.cold) {
        self_.compute({0, 0, 0, 0, kPassed, 0});
      } else {
        part.run();
      }
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < part.calls; ++i) {
        part.run();
      }
      part.seconds.push_back((MPI_Wtime() - begin) / (part.calls * part.each));
    }
  }

  void write(double step) {
    if (file_ != nullptr) {
      std::fprintf(file_, "what,members,batch,m,n,k,bytes,seconds\n");
    }
    row({.what = "step", .members = ranks}, step);
    for (Part& part : parts_) {
      MPI_Allreduce(MPI_IN_PLACE, part.seconds.data(), static_cast<int>(part.seconds.size()),
                    MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      std::sort(part.seconds.begin(), part.seconds.end());
      row(part, part.seconds[part.seconds.size() / 2]);
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

  /// Part is what a row measures.
  struct Part {
    const char* what = "";
    int members = 1;
    Work work{};
    std::int64_t bytes = 0;
    bool cold = false;  ///< a call at a time, after memory has passed through the caches
    int each = 1;       ///< of it that a run makes
    std::function<void()> run{};
    int calls = 1;  ///< of a batch
    std::vector<double> seconds{};
  };
  static constexpr double kBatch = 200e-6;
  static constexpr double kBatchOfExchanges = 2e-3;
  static constexpr std::int64_t kPassed = 128 << 20;

  /// Every rank finds the same, in the same order.
  void collect() {
    std::vector<Work> works;
    std::vector<Call> collectives;
    std::vector<std::int64_t> messages;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Call& call : calls_of(rank)) {
        for (const Work& work : call.works) {
          add(works, work, [](const Work& a, const Work& b) { return a == b; });
        }
        if (call.kind == Kind::send) {
          add(messages, call.elements, [](std::int64_t a, std::int64_t b) { return a == b; });
        } else if (call.kind != Kind::receive && call.kind != Kind::compute) {
          add(collectives, call, same);
        }
      }
    }
    for (const Work& work : works) {
      add_work(work);
    }
    // Kernels of a step that move memory leave no buffer of an exchange in a cache; loops do.
    const bool cold = std::any_of(works.begin(), works.end(), [](const Work& work) {
      return work.batch > 0 || work.bytes > 0;
    });
    for (const Call& call : collectives) {
      add_collective(call, cold);
    }
    for (const std::int64_t elements : messages) {
      add_message(elements, cold);
    }
  }

  void add_work(const Work& work) {
    const char* const what = work.batch > 0 ? "gemm" : work.bytes > 0 ? "stream" : "loop";
    parts_.push_back({.what = what, .work = work, .bytes = work.bytes, .run = [this, work] {
                        self_.compute(work);
                      }});
  }

  void add_collective(const Call& call, bool cold) {
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
    parts_.push_back({.what = name_of(call.kind),
                      .members = members,
                      .bytes = 8 * call.elements * (sharded ? members : 1),
                      .cold = cold,
                      .run = [this, call, own, places, turn = std::size_t{0}]() mutable {
                        if (own > 0) {
                          self_.exchange(call,
                                         places.empty() ? -1 : places[turn++ % places.size()]);
                        }
                      }});
  }

  void add_message(std::int64_t elements, bool cold) {
    std::vector<std::uint64_t> buffer(static_cast<std::size_t>(elements));
    parts_.push_back({.what = "message",
                      .members = 2,
                      .bytes = 8 * elements,
                      .cold = cold,
                      .each = 2,  // there and back
                      .run = [this, buffer]() mutable {
                        const int count = static_cast<int>(buffer.size());
                        for (int turn = 0; turn < 2 && rank_ < 2; ++turn) {
                          if (turn == rank_) {
                            PMPI_Send(buffer.data(), count, MPI_UINT64_T, 1 - rank_, 0,
                                      MPI_COMM_WORLD);
                          } else {
                            PMPI_Recv(buffer.data(), count, MPI_UINT64_T, 1 - rank_, 0,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                          }
                        }
                      }});
  }

  void row(const Part& part, double seconds) {
    if (file_ != nullptr) {
      std::fprintf(file_, "%s,%d,%lld,%lld,%lld,%lld,%lld,%.6g\n", part.what, part.members,
                   static_cast<long long>(part.work.batch), static_cast<long long>(part.work.m),
                   static_cast<long long>(part.work.n), static_cast<long long>(part.work.k),
                   static_cast<long long>(part.bytes), seconds);
    }
  }

  Rank& self_;
  std::FILE* file_;
  int rank_;
  std::vector<Part> parts_;
};

}  // namespace plan
