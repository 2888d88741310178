// SPDX-License-Identifier: Apache-2.0
/// A collective as chunks, and each chunk as phases through the dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "compat/astra/communicators.h"
#include "compat/astra/config.h"
#include "compat/astra/phase.h"
#include "compat/astra/run.h"
#include "compat/astra/themis.h"

namespace orrery::astra {

struct ChunkPlan {
  std::vector<Phase> phases;
  std::uint32_t words = 0;  ///< of all phases; see Phase::first_word
};

struct CollectivePlan {
  std::vector<const ChunkPlan*> chunks;  ///< at least one
  std::uint32_t words = 0;               ///< of the chunk with the most
};

struct CollectiveRequest {
  PhaseType type = PhaseType::all_reduce;
  Bytes size{0};  ///< all-gather: of one rank; others: the whole buffer
};

/// PlannerState is what a rank remembers from one collective to the next. Whoever takes part in a
/// collective goes on with the state in which its plan left the first one to issue it.
struct PlannerState {
  std::size_t rotation = 0;  ///< of round robin
  /// Counts phases with trees, by operation and dimension; they take turns between two.
  std::map<std::pair<int, int>, std::uint32_t> trees;
};

/// Chunks: c = size / splits, and ceil(size / c) of them, all of size c (Quirk::full_last_chunk;
/// Themis and off: the last is what is left). Except for all-gathers c is at least the number of
/// NPUs.
///
/// Order of dimensions: 0..n-1, all-gather n-1..0; Themis and round robin choose another for each
/// chunk. An all-reduce is a reduce-scatter in all dimensions but the last, an all-reduce in the
/// last and all-gathers back (localBWAware), an all-reduce in each (baseline), or reduce-scatters
/// in all and all-gathers back (Themis with its quirks).
class Planner {
 public:
  Planner(const System& system, const Wires& wires, const RunOptions& options);

  /// Returns whether plans depend on PlannerState at all.
  bool has_state() const;
  /// Tells Themis that rank 0 issues a collective.
  void begin(Time now) { themis_.begin(loads_, now); }
  /// The plan stays valid for the planner's life.
  const CollectivePlan& plan(const Shape& shape, const CollectiveRequest& request,
                             PlannerState& state);

  /// Returns why a collective cannot be done on a shape, or nothing.
  std::optional<std::string> refuse(const Shape& shape, PhaseType type) const;
  /// Returns what a message of a collective on a shape costs at its ends.
  Ends ends(const Shape& shape) const;
  /// Returns whether every rank of a line of this shape meets the same times as every other one: no
  /// trees, no logical ring.
  bool symmetric(const Shape& shape, PhaseType type) const;
  /// Returns whether a symmetric collective uses every link for messages of one NPU at a time: one
  /// hop on rings, anything on switches and direct links.
  bool one_sender_per_link(const Shape& shape, PhaseType type) const;

  /// Returns whether chunks take turns between two trees.
  bool alternates(const Shape& shape, PhaseType type) const;
  /// Returns whether one ring or tree goes through all members, whatever their dimensions.
  bool one_ring(const Shape& shape, PhaseType type) const;
  /// Returns whether one member is the root.
  static bool rooted(PhaseType type);

 private:
  struct Leg {
    PhaseType type;
    int axis;
  };
  using Key = std::vector<std::int64_t>;

  std::int64_t chunk_size(const CollectiveRequest& request) const;
  CollectivePlan make_plan(const Shape& shape, const CollectiveRequest& request,
                           PlannerState& state);
  /// The all-gathers of an all-reduce (but of baseline) take the second half of the queues, its
  /// other phases the first; all other collectives take all.
  QueueShare share(PhaseType whole, PhaseType phase) const;
  std::vector<PhaseRequest> requests(const Shape& shape, const CollectiveRequest& request,
                                     const std::vector<int>& order, PlannerState& state) const;
  const ChunkPlan& chunk_plan(const Shape& shape, const CollectiveRequest& request,
                              const std::vector<int>& order, PlannerState& state);
  /// Themis without its quirks: orders of all chunks at once, the same at any time.
  bool balances(const Shape& shape, PhaseType type) const;
  std::vector<std::vector<int>> balanced_orders(const Shape& shape, PhaseType whole,
                                                const std::vector<Bytes>& chunks) const;
  std::vector<int> order_of(const Shape& shape, PhaseType type, Bytes chunk, PlannerState& state);
  std::vector<Leg> legs(const Shape& shape, PhaseType type, const std::vector<int>& order) const;
  /// Returns the legs of any order in which chunks may go through the dimensions.
  std::vector<Leg> possible_legs(const Shape& shape, PhaseType type) const;
  std::vector<Leg> all_reduce_legs(const std::vector<int>& used) const;
  /// Returns the operation whose list a leg of a collective takes.
  Operation list_of(PhaseType whole, const Leg& leg) const;
  Implementation implementation(const Shape& shape, PhaseType whole, const Leg& leg) const;
  Phase phase(const Shape& shape, const PhaseRequest& request) const;
  bool schedules_chunks(const Shape& shape, PhaseType type) const;

  const System& system_;
  const Wires& wires_;
  const RunOptions& options_;
  Themis themis_;
  Themis::State loads_;
  std::map<Key, std::unique_ptr<ChunkPlan>> chunk_plans_;
  std::map<Key, std::unique_ptr<CollectivePlan>> plans_;
  /// Plans that depend on a state, by their chunks.
  std::map<std::vector<const ChunkPlan*>, std::unique_ptr<CollectivePlan>> variable_plans_;
};

}  // namespace orrery::astra
