// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/memory_tables.h"

#include <algorithm>

#include "workload/memory/memory_timeline.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule_row.h"

namespace orrery::footprint {
namespace {

constexpr std::size_t kMostInFlight = 256;  // of a split

/// Returns the number of `value` among `values`, where it is put if it is new.
template <class T>
std::size_t number_of(std::vector<T>& values, const T& value) {
  const auto found = std::ranges::find(values, value);
  const auto number = static_cast<std::size_t>(found - values.begin());
  if (found == values.end()) {
    values.push_back(value);
  }
  return number;
}

}  // namespace

MemoryTables::Split MemoryTables::split_of(const plan::Plan& plan) const {
  Split result;
  const auto parts = plan::split_model(model_, plan);
  std::map<std::vector<std::size_t>, std::size_t> known;  // stages by the contents of their chunks
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    std::vector<StageChunk> chunks =
        stage_chunks(model_, plan, (*parts)[static_cast<std::size_t>(stage)]);
    std::vector<std::size_t> contents;
    std::map<plan::BlockKind, std::int64_t> blocks;
    for (const StageChunk& chunk : chunks) {
      contents.push_back(number_of(result.contents, chunk.blocks));
      result.most_blocks = std::max(result.most_blocks, chunk.blocks.size());
      for (const plan::BlockKind kind : chunk.blocks) {
        ++blocks[kind];
      }
    }
    const auto [found, is_new] = known.try_emplace(contents, result.stages.size());
    if (is_new) {
      EqualStages& own = result.stages.emplace_back();
      own.chunks = std::move(chunks);
      own.blocks.assign(blocks.begin(), blocks.end());
      for (const std::size_t content : contents) {
        own.groups.push_back(number_of(own.contents, content));
      }
    }
    result.stages[found->second].stages.push_back(stage);
  }
  return result;
}

const std::vector<InFlight>& MemoryTables::in_flight_of(const plan::Plan& plan, Split& split) {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  const bool resident = plan.zero == 3 && !plan.reshard_after_forward;
  const std::int64_t microbatches =
      row_of(shape.schedule).forwards_first ? shape.microbatches : replayed_microbatches(shape);
  if (split.in_flight.size() == kMostInFlight) {
    split.in_flight.clear();
  }
  std::vector<InFlight>& known = split.in_flight[{microbatches, shape.pairs, resident}];
  if (known.empty()) {
    for (const EqualStages& equal : split.stages) {
      const std::size_t count = later_hold_less(shape) ? 1 : equal.stages.size();
      known.emplace_back(shape, std::span(equal.stages).first(count), equal.groups, resident);
    }
  }
  return known;
}

StateMemory MemoryTables::state_of(const plan::Plan& plan, const EqualStages& stages) const {
  OwnedParameters owned;
  Bytes largest{0};
  for (const auto& [kind, count] : stages.blocks) {
    owned += sums_.owned(kind) * count;
    largest = std::max(largest, reduced_at_once(plan, sums_.owned(kind)));
  }
  StateMemory state = state_memory(plan, owned, largest);
  state.device[plan::MemoryCategory::buffers] += memories_->workspaces;
  return state;
}

Bytes MemoryTables::most_of(const plan::Plan& plan, const PieceSort& sort, Bytes messages,
                            const EqualStages& stages, const Split& split) {
  const auto with_messages = [&](std::size_t content, Bytes most) {
    return split.contents[content].empty() ? most : most + messages;
  };
  const auto of = [&](std::size_t content, ChunkPass pass) {
    return with_messages(content, totals_[content].most[static_cast<std::size_t>(pass)]);
  };
  const std::size_t own = stages.contents[sort.group];
  if (sort.work != PieceSort::Work::pair) {
    return of(own, static_cast<ChunkPass>(sort.work));
  }
  const std::size_t other = stages.contents[sort.other];
  if (plan.overlap_ep != plan::OverlapExperts::off) {
    return with_messages(own, sums_.most_concurrent(split.contents[own], split.contents[other]));
  }
  return std::max(of(own, ChunkPass::forward), totals_[own].kept + of(other, ChunkPass::backward));
}

MostHeld MemoryTables::most_held(const plan::Plan& plan, const EqualStages& stages,
                                 const InFlight& moments, const Split& split) {
  groups_.clear();
  host_.clear();
  for (const std::size_t content : stages.contents) {
    const ChunkTotals& chunk = totals_[content];
    groups_.push_back({chunk.kept, chunk.held, chunk.resident});
    host_.push_back(chunk.host);
  }
  const StateMemory state = state_of(plan, stages);
  const Bytes messages = message_bytes(*memories_, plan, stages.chunks);
  Bytes most = std::max(state.reduction, state.update);
  Bytes on_host{0};
  for (std::size_t i = 0; i < moments.sorts(); ++i) {
    most = std::max(most, moments.most_before(i, groups_) +
                              most_of(plan, moments.sort(i), messages, stages, split));
    if (plan.offload_activations > 0) {
      on_host = std::max(on_host, moments.most_on_host(i, host_));
    }
  }
  MostHeld held{.total = state.device.total() + most, .lower = state.lower};
  held.lower[graph::kHostLower] += on_host;
  return held;
}

std::optional<Fullest> MemoryTables::fullest_alike(const plan::Plan& plan,
                                                   const machine::Machine& machine) {
  Split& split = splits_.get(plan, [&] { return split_of(plan); });
  memories_ = &blocks_of(plan);
  if (!sums_.begin(*memories_, plan, split.most_blocks)) {
    return std::nullopt;
  }
  totals_.clear();
  for (const ChunkSums::Blocks& content : split.contents) {
    totals_.push_back(sums_.totals(content));
  }
  const std::vector<InFlight>& in_flight = in_flight_of(plan, split);
  const Bytes framework = framework_bytes(model_, plan, machine);
  Fullest fullest{.total = Bytes(0), .fits = true};
  for (std::size_t i = 0; i < in_flight.size(); ++i) {
    MostHeld most = most_held(plan, split.stages[i], in_flight[i], split);
    most.total += framework;
    fullest.total = std::max(fullest.total, most.total);
    fullest.fits = fullest.fits && fits(most, machine);
  }
  return fullest;
}

Fullest MemoryTables::fullest(const plan::Plan& plan, const machine::Machine& machine) {
  const bool alike = plan.batch_shares.empty() && machine.parts.empty();
  const auto found = alike ? fullest_alike(plan, machine) : std::nullopt;
  return found ? *found : footprint::fullest(model_, plan, machine);
}

Bytes MemoryTables::least(const plan::Plan& plan, const machine::Machine& machine) {
  const auto found = fullest_alike(plan, machine);
  return found ? found->total : footprint::fullest(model_, plan, machine).total;
}

}  // namespace orrery::footprint
