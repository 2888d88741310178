// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "workload/memory/chunk_work.h"
#include "workload/plan/schedule_row.h"

namespace orrery::footprint {
namespace {

using Work = MemoryMoment::Work;

/// Every part_size points become their largest.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(points.size());
  if (count <= most) {
    return points;
  }
  std::vector<MemoryPoint> kept;
  for (std::int64_t part = 0; part < most; ++part) {
    kept.push_back(*std::max_element(
        points.begin() + part * count / most, points.begin() + (part + 1) * count / most,
        [](const MemoryPoint& a, const MemoryPoint& b) { return a.bytes < b.bytes; }));
  }
  return kept;
}

/// A chunk's pieces of work; those that the schedule does not have are empty.
struct ChunkPieces {
  std::array<graph::Liveness, kChunkPassCount> passes;
  std::vector<graph::Liveness> pair;  ///< its forward and, by chunk, a backward

  const graph::Liveness& operator[](ChunkPass pass) const {
    return passes[static_cast<std::size_t>(pass)];
  }
};

std::vector<ChunkPieces> pieces_of(const BlockMemories& model, const plan::Plan& plan,
                                   const std::vector<StageChunk>& chunks) {
  const Bytes messages = message_bytes(model, plan, chunks);
  const auto work = [&](std::size_t c, ChunkPass pass, Bytes in_flight) {
    return chunk_work(model, plan, chunks[c], pass, static_cast<std::int64_t>(c), in_flight);
  };
  const auto of = [](const ChunkWork& one) {
    return graph::liveness(one.allocations, one.moments);
  };
  const auto pair = [&](std::size_t c, std::size_t other) {
    const ChunkWork ahead = work(c, ChunkPass::forward, messages);
    if (plan.overlap_ep != plan::OverlapExperts::off) {
      const ChunkWork back = work(other, ChunkPass::backward, Bytes(0));
      return graph::concurrent_liveness(ahead.allocations, ahead.moments, back.allocations,
                                        back.moments);
    }
    return of(ahead).then(of(work(other, ChunkPass::backward, messages)));
  };
  std::vector<ChunkPieces> pieces(chunks.size());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (const ChunkPass pass : chunk_passes(plan.schedule)) {
      pieces[c].passes[static_cast<std::size_t>(pass)] = of(work(c, pass, messages));
    }
    const bool pairs = plan::has_pairs(plan::pipeline_shape(plan));
    for (std::size_t other = 0; pairs && other < chunks.size(); ++other) {
      pieces[c].pair.push_back(pair(c, other));
    }
  }
  return pieces;
}

/// The schedule's pieces of work, one after the other, for a follower with
///   apply(liveness, work of which the fullest moment is, its place among that chunk's blocks)
template <class Follower>
class Replay {
 public:
  Replay(const BlockMemories& model, const plan::Plan& plan, const std::vector<StageChunk>& chunks,
         Follower& follower)
      : plan_(plan), pieces_(pieces_of(model, plan, chunks)), follower_(follower) {}

  /// Returns the most in flight: forwards not yet freed by a backward.
  std::int64_t run(std::int64_t stage) {
    plan::PipelineShape shape = plan::pipeline_shape(plan_);
    const std::int64_t all = shape.microbatches;
    shape.microbatches = replayed_microbatches(shape);
    if (row_of(shape.schedule).forwards_first && shape.microbatches < all) {
      step_over(all);
    } else {
      const plan::StageSchedule schedule(shape, stage);
      for (std::int64_t i = 0; i < schedule.size(); ++i) {
        perform(schedule[i]);
      }
    }
    return most_in_flight_;
  }

 private:
  const ChunkPieces& pieces(std::int64_t chunk) const {
    return pieces_[static_cast<std::size_t>(chunk)];
  }

  void perform(const plan::PipelineSlot& slot) {
    const std::int64_t chunk = slot.chunk;
    switch (slot.direction) {
      case plan::Direction::forward:
        return forward(chunk, slot.microbatch);
      case plan::Direction::backward:
        return backward(chunk, slot.microbatch);
      case plan::Direction::input_gradient:
        return apply(pieces(chunk)[ChunkPass::input_gradient],
                     {Work::input_gradient, slot.microbatch, chunk});
      case plan::Direction::weight_gradient:
        apply(pieces(chunk)[ChunkPass::weight_gradient],
              {Work::weight_gradient, slot.microbatch, chunk});
        --in_flight_;
        return;
      case plan::Direction::forward_backward:
        return forward_backward(slot);
    }
  }

  void count_forward() { most_in_flight_ = std::max(most_in_flight_, ++in_flight_); }
  void forward(std::int64_t chunk, std::int64_t microbatch) {
    count_forward();
    apply(pieces(chunk)[ChunkPass::forward], {Work::forward, microbatch, chunk});
  }
  void backward(std::int64_t chunk, std::int64_t microbatch) {
    apply(pieces(chunk)[ChunkPass::backward], {Work::backward, microbatch, chunk});
    --in_flight_;
  }
  /// Runs a forward beside a backward, in the order of liveness.h: of moments beside each other
  /// those of the backward come first.
  void forward_backward(const plan::PipelineSlot& slot) {
    count_forward();
    const std::int64_t other = slot.backward_chunk;
    const graph::Liveness& pair = pieces(slot.chunk).pair[static_cast<std::size_t>(other)];
    const std::size_t ahead = pieces(slot.chunk)[ChunkPass::forward].moments;
    const std::size_t back = pieces(other)[ChunkPass::backward].moments;
    const MemoryMoment of_forward{Work::forward, slot.microbatch, slot.chunk};
    const MemoryMoment of_backward{Work::backward, slot.backward_microbatch, other};
    const bool beside = plan_.overlap_ep != plan::OverlapExperts::off;
    const std::size_t first = beside ? back : ahead;
    if (pair.moment < first) {
      follower_.apply(pair, beside ? of_backward : of_forward, pair.moment);
    } else {
      follower_.apply(pair, beside ? of_forward : of_backward, pair.moment - first);
    }
    --in_flight_;
  }

  /// The last of many forwards and the first backward, which are the fullest of gpipe.
  void step_over(std::int64_t microbatches) {
    forward(0, 0);
    follower_.skip(pieces(0)[ChunkPass::forward], microbatches - 2);
    in_flight_ += microbatches - 2;
    forward(0, microbatches - 1);
    backward(0, 0);
    follower_.skip(pieces(0)[ChunkPass::backward], microbatches - 2);
    in_flight_ -= microbatches - 2;
    backward(0, microbatches - 1);
  }

  void apply(const graph::Liveness& piece, const MemoryMoment& moment) {
    follower_.apply(piece, moment, piece.moment);
  }

  const plan::Plan& plan_;
  std::vector<ChunkPieces> pieces_;
  Follower& follower_;
  std::int64_t in_flight_ = 0;  // forwards not yet freed by a backward
  std::int64_t most_in_flight_ = 0;
};

/// Every category, when it is fullest.
class Categories {
 public:
  Categories(const StateMemory& state, const std::vector<StageChunk>& chunks,
             const TimelineOptions& options)
      : chunks_(chunks), options_(options), state_(state), level_(state.device, state.lower) {}

  void skip(const graph::Liveness& piece, std::int64_t times) { level_.skip(piece, times); }
  /// `nth`: of the blocks of the moment's chunk, in the order in which they run, the fullest.
  void apply(const graph::Liveness& piece, MemoryMoment moment, std::size_t nth) {
    const graph::MemoryBytes most = level_.run(piece);
    if (piece.moments > 0) {
      name(moment, nth);
      consider(most, moment);
    }
  }

  MemoryTimeline finish(std::int64_t pieces) {
    result_.end = level_.level();
    result_.highest = level_.highest();
    if (state_.reduction > Bytes(0)) {
      at_end(plan::MemoryCategory::buffers, state_.reduction, Work::reduction);
    }
    at_end(plan::MemoryCategory::optimizer, state_.update, Work::optimizer);
    result_.points = thinned(result_.points, options_.points);
    result_.lower = level_.most_lower();
    result_.pieces = pieces;
    return std::move(result_);
  }

 private:
  void name(MemoryMoment& moment, std::size_t nth) const {
    const StageChunk& chunk = chunks_[static_cast<std::size_t>(moment.chunk)];
    const std::size_t block = moment.work == Work::forward ? nth : chunk.blocks.size() - 1 - nth;
    const std::int64_t before = chunk.blocks.front() == plan::kEmbeddingBlock ? 1 : 0;
    moment.kind = chunk.blocks[block];
    moment.layer = moment.kind >= plan::kFirstLayerBlock
                       ? chunk.first_layer + static_cast<std::int64_t>(block) - before
                       : 0;
  }

  void consider(const graph::MemoryBytes& bytes, const MemoryMoment& moment) {
    const Bytes total = bytes.total();
    if (total > peak_total_) {
      peak_total_ = total;
      result_.peak = bytes;
      result_.moment = moment;
    }
    if (options_.points > 0) {
      result_.points.push_back({moment, total});
    }
  }

  void at_end(plan::MemoryCategory category, Bytes bytes, Work work) {
    graph::MemoryBytes now = level_.level();
    now[category] += bytes;
    consider(now, {.work = work});
    result_.highest.raise_to(now);
  }

  const std::vector<StageChunk>& chunks_;
  const TimelineOptions& options_;
  const StateMemory& state_;
  graph::MemoryLevel level_;
  Bytes peak_total_{-1};
  MemoryTimeline result_;
};

/// The sum over categories.
class Totals {
 public:
  explicit Totals(const StateMemory& state) : level_(state.device, state.lower) {}

  void skip(const graph::Liveness& piece, std::int64_t times) { level_.skip(piece, times); }
  void apply(const graph::Liveness& piece, const MemoryMoment&, std::size_t) {
    const Bytes held = level_.run(piece);
    most_ = piece.moments > 0 ? std::max(most_, held) : most_;
  }

  MostHeld finish(const StateMemory& state) const {
    const Bytes end = level_.level() + std::max(state.reduction, state.update);
    return {.total = std::max(most_, end), .lower = level_.most_lower()};
  }

 private:
  graph::TotalLevel level_;
  Bytes most_{0};
};

std::string_view name_of(Work work) {
  switch (work) {
    case Work::forward:
      return "forward";
    case Work::backward:
      return "backward";
    case Work::input_gradient:
      return "input gradients";
    case Work::weight_gradient:
      return "weight gradients";
    case Work::reduction:
      return "reduction of gradients";
    case Work::optimizer:
      return "optimizer";
  }
  return "";
}

}  // namespace

std::string to_string(const MemoryMoment& moment, bool with_chunk) {
  if (moment.work == Work::reduction || moment.work == Work::optimizer) {
    return std::string(name_of(moment.work));
  }
  const std::string block = moment.kind == plan::kEmbeddingBlock ? "embedding"
                            : moment.kind == plan::kHeadBlock
                                ? "head"
                                : fmt::format("layer {}", moment.layer);
  return fmt::format("{} of microbatch {}, {}{}", name_of(moment.work), moment.microbatch,
                     with_chunk ? fmt::format("chunk {}, ", moment.chunk) : "", block);
}

bool later_hold_less(const plan::PipelineShape& shape) {
  return !row_of(shape.schedule).runs && !shape.pairs;
}

std::int64_t replayed_microbatches(const plan::PipelineShape& shape) {
  const std::int64_t least = 3 * shape.stages;
  const std::int64_t round = 2 * shape.stages;
  const std::int64_t more = shape.microbatches - least;
  return more < round ? shape.microbatches : least + more % round;
}

MemoryTimeline memory_timeline(const BlockMemories& model, const plan::Plan& plan,
                               std::int64_t stage, const std::vector<StageChunk>& chunks,
                               const TimelineOptions& options) {
  const StateMemory state = state_memory(model, plan, chunks);
  Categories categories(state, chunks, options);
  const std::int64_t pieces = Replay(model, plan, chunks, categories).run(stage);
  return categories.finish(pieces);
}

MostHeld most_held(const BlockMemories& model, const plan::Plan& plan, std::int64_t stage,
                   const std::vector<StageChunk>& chunks) {
  const StateMemory state = state_memory(model, plan, chunks);
  Totals totals(state);
  Replay(model, plan, chunks, totals).run(stage);
  return totals.finish(state);
}

}  // namespace orrery::footprint
