// SPDX-License-Identifier: Apache-2.0
/// Measures times of each different work and exchange of a plan within its steps, as rows of CSV:
///
///   what,members,batch,m,n,k,bytes,count,seconds
///   step                median over the steps, each as long as its slowest rank
///   gemm, stream        a work of any rank; bytes that a stream reads and writes
///   all_reduce, ...     a collective of that many members; bytes as nccl-tests counts them
///   message             half of a round trip between ranks 0 and 1, one after every step
///
/// count is of a step, over all ranks. Seconds are means over the half of the steps in the middle
/// by their time, so that the parts of a rank that never waits add up to the step, however other
/// programs spread both. Equal works one after the other are timed together.
///
/// A collective lasts from when its last member calls MPI for it to when the last is done. The call
/// that starts it, which a rank may make long before, counts as made when the rank begins to wait.
/// Clocks are those of one host. Loops, whose times are stated, are no rows. Rank 0 writes.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emit/runtime/exchange.h"
#include "emit/runtime/plan.h"

namespace plan {

class Measurements {
 public:
  /// Measures nothing without the name of a file.
  Measurements(std::string file, int rank) : file_(std::move(file)), rank_(rank) {
    for (int other = 0; on() && other < ranks; ++other) {
      for (const Call& call : calls_of(other)) {
        count(call);
      }
    }
    entered_.resize(calls_of(rank).size());
    ended_.resize(entered_.size());
  }

  bool on() const { return !file_.empty(); }

  /// Returns seconds of a clock that all processes of a host share; 0 where nothing is measured.
  double now() const {
    using Seconds = std::chrono::duration<double>;
    return on() ? Seconds(std::chrono::steady_clock::now().time_since_epoch()).count() : 0;
  }

  /// Has the works computed, those that are alike and follow one another at once.
  template <class Compute>
  void run(std::span<const Work> works, Compute compute) {
    if (!on()) {
      compute(works);
      return;
    }
    for (double before = now(); !works.empty();) {
      const auto other = std::find_if(works.begin(), works.end(),
                                      [&](const Work& work) { return work != works.front(); });
      const auto alike = static_cast<std::size_t>(other - works.begin());
      compute(works.first(alike));
      const double after = now();
      works_.push_back({&works.front(), after - before});
      works = works.subspan(alike);
      before = after;
    }
  }

  /// Notes when the rank called MPI for the exchange of a call of its list, and when it was done.
  void exchanged(std::size_t call, double entered, double ended) {
    entered_[call] = entered;
    ended_[call] = ended;
  }

  /// Every rank calls this after each step; one that does not count leaves nothing.
  void end_step(bool counts, const std::vector<Communicator>& groups) {
    if (!on()) {
      return;
    }
    for (Part& part : parts_) {
      part.seconds.push_back(0);
    }
    for (const Worked& worked : works_) {
      if (Part* const part = part_of({.what = "", .work = *worked.work}); part != nullptr) {
        part->seconds.back() += worked.seconds;
      }
    }
    for (std::size_t group = 0; group < groups.size(); ++group) {
      add_collectives(static_cast<int>(group), groups[group].comm);
    }
    for (Part& part : parts_) {
      if (part.call.kind == Kind::send) {
        part.seconds.back() = half_of_a_trip(part.call.elements);
      }
    }
    works_.clear();
    for (Part& part : parts_) {
      part.seconds.resize(part.seconds.size() - (counts ? 0 : 1));
    }
  }

  /// Writes the file. `steps`: seconds of each; `median` of them.
  void write(const std::vector<double>& steps, double median) {
    if (!on()) {
      return;
    }
    std::FILE* const file = rank_ == 0 ? std::fopen(file_.c_str(), "w") : nullptr;
    if (file != nullptr) {
      std::fprintf(file, "what,members,batch,m,n,k,bytes,count,seconds\n");
      std::fprintf(file, "step,%d,0,0,0,0,0,1,%.6g\n", ranks, median);
    }
    std::vector<std::size_t> order(steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
    const std::size_t quarter = order.size() / 4;
    for (const Part& part : parts_) {
      double sum = 0;
      for (std::size_t i = quarter; i < order.size() - quarter; ++i) {
        sum += part.seconds[order[i]];
      }
      MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      const int calls = part.call.kind == Kind::send ? 1 : part.count;
      write(file, part, sum / (static_cast<double>(order.size() - 2 * quarter) * calls));
    }
    if (file != nullptr) {
      std::fclose(file);
    }
  }

 private:
  /// Part is what a row measures: a work, or the exchange of a call.
  struct Part {
    const char* what = "";
    int members = 1;
    Work work{};
    Call call{};
    std::int64_t bytes = 0;
    int count = 0;
    std::vector<double> seconds{};  ///< by step, of all calls of this rank together
  };
  struct Worked {
    const Work* work;
    double seconds;
  };

  static bool same(const Part& a, const Part& b) {
    return a.work == b.work && a.call.kind == b.call.kind && a.call.group == b.call.group &&
           a.call.elements == b.call.elements;
  }

  Part* part_of(const Part& wanted) {
    const auto found = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const Part& part) { return same(part, wanted); });
    return found == parts_.end() ? nullptr : &*found;
  }

  void count(Part part) {
    Part* found = part_of(part);
    if (found == nullptr) {
      parts_.push_back(std::move(part));
      found = &parts_.back();
    }
    ++found->count;
  }

  void count(const Call& call) {
    for (const Work& work : call.works) {
      if (work.batch > 0 || work.bytes > 0) {
        count({.what = work.batch > 0 ? "gemm" : "stream", .work = work, .bytes = work.bytes});
      }
    }
    if (call.kind == Kind::send) {
      count(
          {.what = "message", .members = 2, .call = exchange_of(call), .bytes = 8 * call.elements});
    } else if (is_collective(call)) {
      const bool sharded = call.kind == Kind::all_gather || call.kind == Kind::reduce_scatter ||
                           call.kind == Kind::all_to_all;
      const int members = members_of(call.group);
      count({.what = name_of(call.kind),
             .members = members,
             .call = exchange_of(call),
             .bytes = 8 * call.elements * (sharded ? members : 1)});
    }
  }

  static bool is_collective(const Call& call) {
    return call.kind != Kind::compute && call.kind != Kind::send && call.kind != Kind::receive;
  }

  /// Returns what tells an exchange from others; messages are alike whoever sends them.
  static Call exchange_of(const Call& call) {
    Call exchange{};
    exchange.kind = call.kind;
    exchange.group = call.kind == Kind::send ? 0 : call.group;
    exchange.elements = call.elements;
    return exchange;
  }

  /// Returns the size of the communicators of a family.
  static int members_of(int group) {
    const auto& colors = groups[static_cast<std::size_t>(group)].colors;
    int most = 1;
    for (const int color : colors) {
      most = std::max(
          most, color < 0 ? 0 : static_cast<int>(std::count(colors.begin(), colors.end(), color)));
    }
    return most;
  }

  /// Members start the collectives of a communicator in one order.
  void add_collectives(int group, MPI_Comm comm) {
    std::vector<std::size_t> own;
    std::vector<double> last;
    for (std::size_t i = 0; i < entered_.size() && comm != MPI_COMM_NULL; ++i) {
      const Call& call = calls_of(rank_)[i];
      if (is_collective(call) && call.group == group) {
        own.push_back(i);
        last.push_back(entered_[i]);
        last.push_back(ended_[i]);
      }
    }
    if (comm != MPI_COMM_NULL) {
      MPI_Allreduce(MPI_IN_PLACE, last.data(), static_cast<int>(last.size()), MPI_DOUBLE, MPI_MAX,
                    comm);
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      Part* const part = part_of({.what = "", .call = exchange_of(calls_of(rank_)[own[i]])});
      part->seconds.back() += last[2 * i + 1] - last[2 * i];
    }
  }

  /// Returns it on rank 0; 0 on others.
  double half_of_a_trip(std::int64_t elements) {
    message_.resize(std::max(message_.size(), static_cast<std::size_t>(elements)));
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now();
    for (int turn = 0; turn < 2 && rank_ < 2; ++turn) {
      if (turn == rank_) {
        PMPI_Send(message_.data(), static_cast<int>(elements), MPI_UINT64_T, 1 - rank_, 0,
                  MPI_COMM_WORLD);
      } else {
        PMPI_Recv(message_.data(), static_cast<int>(elements), MPI_UINT64_T, 1 - rank_, 0,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    return rank_ == 0 ? (now() - began) / 2 : 0;
  }

  static void write(std::FILE* file, const Part& part, double seconds) {
    if (file != nullptr) {
      std::fprintf(file, "%s,%d,%lld,%lld,%lld,%lld,%lld,%d,%.6g\n", part.what, part.members,
                   static_cast<long long>(part.work.batch), static_cast<long long>(part.work.m),
                   static_cast<long long>(part.work.n), static_cast<long long>(part.work.k),
                   static_cast<long long>(part.bytes), part.count, seconds);
    }
  }

  std::string file_;
  int rank_;
  std::vector<Part> parts_;
  std::vector<Worked> works_;    ///< of the step that runs
  std::vector<double> entered_;  ///< by call of the list
  std::vector<double> ended_;
  Buffer message_;
};

}  // namespace plan
