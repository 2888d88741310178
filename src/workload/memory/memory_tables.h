// SPDX-License-Identifier: Apache-2.0
/// footprint::fullest() for who asks of very many plans of one model: the same bytes from tables of
/// what the plans before had in common.
///
///   by fields that shape blocks      block_memory.h
///   by stages, chunks and layers     which stages hold equal chunks
///   by these and the schedule        when such a stage may be fullest (in_flight.h)
///
/// What is left for a plan: sums over the blocks of each different chunk (chunk_totals.h), and of
/// each different stage its state and a maximum over few moments. O(blocks) of the different
/// chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "workload/memory/block_memory.h"
#include "workload/memory/chunk_totals.h"
#include "workload/memory/footprint.h"
#include "workload/memory/in_flight.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"
#include "workload/zoo/model.h"

namespace orrery::footprint {

/// Finds the memory of many plans of one model, and keeps what they share. It is not thread-safe:
/// each thread has its own.
class MemoryTables {
 public:
  /// The model must live as long.
  explicit MemoryTables(const zoo::Model& model) : model_(model) {}

  /// Returns the fullest stage of a checked plan on a machine of its devices.
  Fullest fullest(const plan::Plan& plan, const machine::Machine& machine);

  /// Returns fullest().total where devices and shares of the batch are alike; of others what a
  /// replica with the mean share, rounded down, has on the devices that the machine states: some
  /// has as much.
  Bytes least(const plan::Plan& plan, const machine::Machine& machine);

  /// Valid until another plan is asked for.
  const BlockMemories& blocks_of(const plan::Plan& plan) { return blocks_.of(model_, plan); }

 private:
  using SplitFields =
      plan::FieldsAlone<&plan::Plan::pp, &plan::Plan::schedule, &plan::Plan::chunks,
                        &plan::Plan::stage_layers, &plan::Plan::unquantized_start_layers,
                        &plan::Plan::unquantized_end_layers>;

  /// Stages whose chunks hold equal blocks, one after the other.
  struct EqualStages {
    std::vector<StageChunk> chunks;
    std::vector<std::size_t> groups;    ///< of each chunk: which of the different ones it is
    std::vector<std::size_t> contents;  ///< of each group
    std::vector<std::pair<plan::BlockKind, std::int64_t>> blocks;  ///< how many of each kind
    std::vector<std::int64_t> stages;
  };
  struct Split {
    std::vector<ChunkSums::Blocks> contents;  ///< of all chunks, the different ones
    std::size_t most_blocks = 0;
    std::vector<EqualStages> stages;
    /// Holds what each of `stages` has in flight, by microbatches, pairs and resident parameters.
    std::map<std::tuple<std::int64_t, bool, bool>, std::vector<InFlight>> in_flight;
  };

  /// Returns the fullest stage where devices and shares are alike. Nothing: bytes that are too many
  /// for sums.
  std::optional<Fullest> fullest_alike(const plan::Plan& plan, const machine::Machine& machine);
  Split split_of(const plan::Plan& plan) const;
  const std::vector<InFlight>& in_flight_of(const plan::Plan& plan, Split& split);
  MostHeld most_held(const plan::Plan& plan, const EqualStages& stages, const InFlight& moments,
                     const Split& split);
  StateMemory state_of(const plan::Plan& plan, const EqualStages& stages) const;
  Bytes most_of(const plan::Plan& plan, const PieceSort& sort, Bytes messages,
                const EqualStages& stages, const Split& split);

  static constexpr std::size_t kMostSplits = 4096;

  const zoo::Model& model_;
  BlockMemoryTable blocks_;
  plan::PlanTable<SplitFields, Split, kMostSplits> splits_;

  // Of the plan at hand.
  const BlockMemories* memories_ = nullptr;
  ChunkSums sums_;
  std::vector<ChunkTotals> totals_;  // by contents
  std::vector<GroupBytes> groups_;
  std::vector<Bytes> host_;  // by group
};

}  // namespace orrery::footprint
