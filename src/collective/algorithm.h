// SPDX-License-Identifier: Apache-2.0
/// A collective algorithm as a row: everything that planning, pricing, simulating and reporting ask
/// of it. Each stands in a file of its own,
///
///   algorithm_NAME.cc:  AlgorithmRow NAME_row() { return {.name = "NAME", ...}; }
///
/// and CMake lists the files (algorithm_files()). docs/howto/collective_algorithm.md adds one.
/// A function that is null says that the algorithm has none of its own; the comment names what
/// takes its place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/cost.h"
#include "collective/price.h"
#include "collective/schedule.h"
#include "collective/steps.h"
#include "collective/themis.h"

namespace orrery::collective {

/// Says where one dimension stands among those over which an algorithm runs at once (flat.h).
struct Place {
  double count = 1;    ///< c_i, members in the dimension
  double inside = 1;   ///< Q_i, members inside it
  double members = 1;  ///< N, of the group
  double passing = 1;  ///< X_i
  double first = 1;    ///< c_0
  double below = 1;    ///< Q_k, members inside each coordinate of the outermost dimension
  bool innermost = false;
  bool outermost = false;
  bool closes = false;  ///< the closing edge of a ring crosses this inner dimension as well

  /// Returns what an exchange among all members puts on the dimension, in an exchange among its
  /// own.
  double exchanged() const { return inside * passing * count / members; }
};

/// Busy time of the links from one member of a line to the next and back, in that of the busiest.
struct Gap {
  double forward = 1;
  double backward = 1;
};

struct AlgorithmRow {
  using Kind = graph::CollectiveKind;

  /// Left out by an algorithm that the code does not name: it then follows those that it does.
  CollectiveAlgorithm value = kUnnamedAlgorithm;
  std::string_view name;
  std::string_view sentence;    ///< for help texts
  std::string_view alias = {};  ///< another name that commands take

  // What it costs.
  /// Steps and load in one dimension (steps.h); nothing where it does not do the kind or number of
  /// members. Null: none; where it takes a phase per dimension, each takes `auto`.
  std::optional<StepCount> (*counts)(Kind, std::int64_t members, const Fabric&) = nullptr;
  /// The same in one of several dimensions that it runs through at once (flat.h); null: none.
  std::optional<StepCount> (*part)(Kind, const Place&, const Fabric&) = nullptr;
  /// Says whether over several dimensions it takes a phase in each instead; null: never.
  bool (*by_dimension)(Kind) = nullptr;
  bool lockstep = false;  ///< every step takes as long as one of the slowest dimension
  bool at_once = false;   ///< a member sends all its messages at once, each on the shortest route
  bool in_turn = false;   ///< a member has one partner at a time, over links of one dimension
  /// Peers that a member exchanges with at once over the dimension of extent i. Null: `at_once` all
  /// that it reaches there, else one.
  std::int64_t (*peers)(std::span<const Extent>, std::size_t i) = nullptr;
  /// Protocols of its own in a dimension of the machine file, without which it does not run there;
  /// null: the library's.
  std::vector<topology::Protocol> topology::NetworkDimension::*protocols = nullptr;
  std::string_view launch = {};  ///< how its kernels are launched, the protocol's name; empty: any
  std::int64_t least = 2;        ///< members in the innermost dimension
  double sum_efficiency = 1;     ///< of the bandwidth, in an all_reduce
  bool own_chunk = true;         ///< a member has a chunk of its own to copy (moves_own_chunk)
  /// The price of an algorithm that chooses among others. Null: price_counts().
  PricedPhase (*price)(const PhaseRequest&, const AlgorithmRow&) = nullptr;
  /// Phases that are not priced one by one; `performs` says for which kinds. Null: plan_collective.
  std::vector<CollectivePhase> (*plan)(Kind, Bytes, const std::vector<Extent>&,
                                       const machine::Machine&) = nullptr;
  bool (*performs)(Kind) = nullptr;
  std::optional<ChunkScheduler> chunks = {};  ///< that cuts it into chunks, where asked to

  // What it sends.
  /// The messages among members in dimensions of so many each, the innermost first; `chunks` as in
  /// schedule_of. Null: it has none, and networks that simulate messages refuse it.
  std::optional<MessageSchedule> (*messages)(Kind, std::span<const int> counts,
                                             int chunks) = nullptr;
  bool rings = false;  ///< several of its schedules turn at once, in the orders of ring_orders.h
  /// The load of the links between member g and g+1 of a line of members; null: all the busiest's.
  Gap (*load)(Kind, std::int64_t members, std::int64_t gap) = nullptr;
  /// Part of the buffer that a member sends; null: what a ring does.
  double (*sent)(double members) = nullptr;
  bool alike = true;  ///< members may stand for each other, as far as their dimensions let them

  /// Says why `auto` does not take it; null, or empty: auto prices it as it is priced when asked
  /// for.
  std::string_view (*left_out)(Kind, const std::vector<Extent>&) = nullptr;

  /// Returns whether a member copies a chunk of its own (Protocol::local_copy).
  bool moves_own_chunk(Kind kind) const {
    return own_chunk && kind != Kind::broadcast && kind != Kind::send_recv;
  }
  double efficiency(Kind kind) const { return kind == Kind::all_reduce ? sum_efficiency : 1; }
};

/// Returns all of them: those that the code names in the order of the enumeration, then others by
/// name.
const std::vector<AlgorithmRow>& algorithms();

inline const AlgorithmRow& row_of(CollectiveAlgorithm algorithm) {
  return algorithms()[static_cast<std::size_t>(algorithm)];
}

/// Returns the rows of the files, unordered. CMake writes it, of a test with toys too
/// (src/CMakeLists.txt).
std::vector<AlgorithmRow> algorithm_files();

// What several rows share.

/// Returns the load of an exchange among all members of a line, (g+1)(c-1-g) messages each way.
Gap exchange_gap(graph::CollectiveKind kind, std::int64_t members, std::int64_t gap);

/// Prices a serving engine's choice: its kernels where they are faster than the library, which it
/// calls in the same way: what launching costs its kernels (buffer_copy, at_least) the library pays
/// too.
PricedPhase price_custom(const PhaseRequest& request, const AlgorithmRow& row);

/// Reasons of left_out: of trees, and sums in switches over several dimensions; of kernels that a
/// serving engine brings; of algorithms that go dimension by dimension.
std::string_view tree_left_out(graph::CollectiveKind kind, const std::vector<Extent>& extents);
std::string_view serving_kernel(graph::CollectiveKind kind, const std::vector<Extent>& extents);
std::string_view library_is_flat(graph::CollectiveKind kind, const std::vector<Extent>& extents);

}  // namespace orrery::collective
