// SPDX-License-Identifier: Apache-2.0
/// A simulated step as what every rank does, call by call: the tables of an MPI program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/workload.h"
#include "simulate/timeline.h"

namespace orrery::emit {

/// Work is a product, batch times; or, with batch 0, bytes that are read and written; or, without
/// bytes, a loop that lasts as long as a trace says.
struct Work {
  graph::GemmShape gemm{.batch = 0};
  Bytes bytes{0};
  Time duration{0};

  friend bool operator==(const Work&, const Work&) = default;
};

struct Call {
  enum class Kind : std::uint8_t { compute, collective, send, receive };

  Kind kind = Kind::compute;
  graph::CollectiveKind collective = graph::CollectiveKind::all_reduce;
  std::string name;
  int group = -1;             ///< of a collective: number in Program::groups
  std::int64_t elements = 0;  ///< of 8 bytes: of a rank's buffer, or of a member's shard
  std::int64_t peer = 0;      ///< of a message: the other rank minus the own one
  int tag = 0;
  std::vector<int> waits;  ///< earlier calls of the rank that must be over, each named once
  std::vector<Work> works;

  friend bool operator==(const Call&, const Call&) = default;
};

/// A family of communicators with its ranks: color -1 for those in none.
struct Family {
  std::string name;
  std::vector<int> colors;
  std::vector<int> keys;

  friend bool operator==(const Family&, const Family&) = default;
};

struct Program {
  std::int64_t ranks = 1;
  std::vector<Family> groups;            ///< those that collectives use
  std::vector<std::vector<Call>> lists;  ///< distinct ones
  std::vector<std::size_t> list_of;      ///< by rank

  friend bool operator==(const Program&, const Program&) = default;
};

/// Collectives and messages, each counted by every rank that takes part.
std::int64_t exchanges_of(const Program& program);

/// Bytes of an element of a buffer: unsigned 64-bit numbers, whose sums are exact in any order.
inline constexpr std::int64_t kElementBytes = 8;

/// Returns the program of a step. A rank's calls stand in the order in which they had their streams
/// and dependencies in the simulation (Timeline::spans), and wait for the communication that they
/// waited for there: by `after`, and by the order of their stream. What takes no time (waits) or
/// moves nothing (a communicator of one) is no call.
///
/// `shrink` divides every dimension of a product, streamed bytes and every message, to no less than
/// 1, or one element a member; kinds and order of calls stay.
///
/// A kernel that is no product, and whose duration is known, is a loop.
///
/// Requires the timeline of that workload with spans, of every rank (no fold, no shortcuts), one
/// step, no faults; shrink >= 1. Mistakes: messages that MPI's counts cannot say.
Result<Program> program_of(const graph::Workload& workload, const simulate::Timeline& timeline,
                           std::int64_t shrink);

/// Returns the workload that the program executes, to be simulated on the machine that it runs on:
/// products in fp32, and kernels that stream, of the program's sizes; copies and work of the host
/// are kernels of the rank, which is one thread; communication of its sizes.
graph::Workload executed(graph::Workload workload, std::int64_t shrink);

/// Returns such a workload with every collective among its rank's kernels: MPI moves and adds while
/// the rank waits, and nothing while it computes.
graph::Workload on_one_thread(graph::Workload executed);

/// Returns the communication of every rank in the order of the simulation, a line "RANK CALL" each,
/// as the emitted program notes what MPI is asked. Read from the spans alone, not from a Program:
/// the two agree or one of them is wrong.
std::string simulated_order(const graph::Workload& workload, const simulate::Timeline& timeline,
                            std::int64_t shrink);

}  // namespace orrery::emit
