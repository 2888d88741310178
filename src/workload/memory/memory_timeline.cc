// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "workload/memory/chunk_work.h"

namespace orrery {
namespace {

using Work = MemoryMoment::Work;

CategoryBytes times(CategoryBytes bytes, std::int64_t count) {
  for (Bytes& part : bytes.bytes) {
    part = part * count;
  }
  return bytes;
}

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

class Replay {
 public:
  Replay(const BlockMemories& model, const Plan& plan, const std::vector<StageChunk>& chunks,
         const TimelineOptions& options)
      : plan_(plan), chunks_(chunks), options_(options) {
    for (const StageChunk& chunk : chunks) {
      works_.push_back(chunk_works(model, plan, chunk));
      messages_ = std::max(messages_, message_bytes(model, plan, chunk));
    }
    state_ = state_memory(model, plan, chunks);
    level_ = state_.device;
    total_ = level_.total();
    in_flight_.resize(chunks.size());
  }

  MemoryTimeline run(std::int64_t stage) {
    PipelineShape shape = pipeline_shape(plan_);
    const std::int64_t all = shape.microbatches;
    shape.microbatches = replayed_microbatches(shape);
    if (shape.schedule == Schedule::gpipe && shape.microbatches < all) {
      step_over(all);
    } else {
      const StageSchedule schedule(shape, stage);
      for (std::int64_t i = 0; i < schedule.size(); ++i) {
        perform(schedule[i]);
      }
    }
    result_.end = level_;
    finish();
    return std::move(result_);
  }

 private:
  void perform(const PipelineSlot& slot) {
    const std::int64_t chunk = slot.chunk;
    switch (slot.direction) {
      case Direction::forward:
        return forward(chunk, slot.microbatch);
      case Direction::backward:
        return backward(chunk, slot.microbatch);
      case Direction::input_gradient:
        return input_gradient(chunk, slot.microbatch);
      case Direction::weight_gradient:
        return weight_gradient(chunk, slot.microbatch);
      case Direction::forward_backward:
        return forward_backward(slot, 1 - chunk);
    }
  }

  void begin(std::int64_t chunk) {
    const ChunkWorks& works = works_[static_cast<std::size_t>(chunk)];
    if (in_flight_[static_cast<std::size_t>(chunk)]++ == 0) {
      keep(MemoryCategory::buffers, works.resident);
    }
    host_ += works.offloaded;
    most_host_ = std::max(most_host_, host_);
    result_.pieces = std::max(result_.pieces, ++pieces_);
  }
  /// After the input gradients: parameters and activations are needed no more.
  void end(std::int64_t chunk) {
    const ChunkWorks& works = works_[static_cast<std::size_t>(chunk)];
    host_ -= works.offloaded;
    if (--in_flight_[static_cast<std::size_t>(chunk)] == 0) {
      keep(MemoryCategory::buffers, Bytes(0) - works.resident);
    }
  }

  void forward(std::int64_t chunk, std::int64_t microbatch) {
    begin(chunk);
    apply(works_[static_cast<std::size_t>(chunk)].forward, {Work::forward, microbatch, chunk});
  }
  void backward(std::int64_t chunk, std::int64_t microbatch) {
    apply(works_[static_cast<std::size_t>(chunk)].backward, {Work::backward, microbatch, chunk});
    end(chunk);
    --pieces_;
  }
  void input_gradient(std::int64_t chunk, std::int64_t microbatch) {
    apply(works_[static_cast<std::size_t>(chunk)].input_gradient,
          {Work::input_gradient, microbatch, chunk});
    end(chunk);
  }
  void weight_gradient(std::int64_t chunk, std::int64_t microbatch) {
    apply(works_[static_cast<std::size_t>(chunk)].weight_gradient,
          {Work::weight_gradient, microbatch, chunk});
    --pieces_;
  }

  /// Side by side: the buffers and works of both exist at once. The backward names the moment.
  void forward_backward(const PipelineSlot& slot, std::int64_t other) {
    const ChunkWorks& ahead = works_[static_cast<std::size_t>(slot.chunk)];
    ChunkWork both = works_[static_cast<std::size_t>(other)].backward;
    both.most += ahead.forward.most;
    both.most_total += ahead.forward.most_total;
    both.highest += ahead.forward.highest;
    both.change += ahead.forward.change;
    begin(slot.chunk);
    apply(both, {Work::backward, slot.backward_microbatch, other});
    end(other);
    --pieces_;
  }

  /// The last of many forwards and the first backward, which are the fullest of gpipe.
  void step_over(std::int64_t microbatches) {
    const auto between = [&](const ChunkWork& work, std::int64_t count) {
      level_ += times(work.change, count);
      total_ = level_.total();
    };
    const ChunkWorks& works = works_.front();
    forward(0, 0);
    between(works.forward, microbatches - 2);
    pieces_ += microbatches - 2;
    in_flight_.front() += microbatches - 2;
    host_ += works.offloaded * (microbatches - 2);
    forward(0, microbatches - 1);
    backward(0, 0);
    between(works.backward, microbatches - 2);
    pieces_ -= microbatches - 2;
    in_flight_.front() -= microbatches - 2;
    host_ -= works.offloaded * (microbatches - 2);
    backward(0, microbatches - 1);
  }

  void keep(MemoryCategory category, Bytes bytes) {
    level_[category] += bytes;
    total_ += bytes;
  }

  void apply(const ChunkWork& work, MemoryMoment moment) {
    const auto& blocks = chunks_[static_cast<std::size_t>(moment.chunk)].blocks;
    if (!blocks.empty()) {
      CategoryBytes most = level_ + work.most;
      most[MemoryCategory::buffers] += messages_;
      name(moment, work.block);
      consider(most, total_ + messages_ + work.most_total, moment);
      CategoryBytes highest = level_ + work.highest;
      highest[MemoryCategory::buffers] += messages_;
      raise(highest);
    }
    level_ += work.change;
    total_ = level_.total();
  }

  void name(MemoryMoment& moment, std::size_t block) const {
    const StageChunk& chunk = chunks_[static_cast<std::size_t>(moment.chunk)];
    const std::int64_t before = chunk.blocks.front() == kEmbeddingBlock ? 1 : 0;
    moment.kind = chunk.blocks[block];
    moment.layer = moment.kind >= kFirstLayerBlock
                       ? chunk.first_layer + static_cast<std::int64_t>(block) - before
                       : 0;
  }

  void consider(const CategoryBytes& bytes, Bytes total, const MemoryMoment& moment) {
    if (total > peak_total_) {
      peak_total_ = total;
      result_.peak = bytes;
      result_.moment = moment;
    }
    if (options_.points > 0) {
      result_.points.push_back({moment, total});
    }
  }
  void raise(const CategoryBytes& bytes) {
    for (std::size_t c = 0; c < bytes.bytes.size(); ++c) {
      result_.highest.bytes[c] = std::max(result_.highest.bytes[c], bytes.bytes[c]);
    }
  }

  void finish() {
    if (state_.reduction > Bytes(0)) {
      at_end(MemoryCategory::buffers, state_.reduction, Work::reduction);
    }
    at_end(MemoryCategory::optimizer, state_.update, Work::optimizer);
    result_.points = thinned(result_.points, options_.points);
    result_.lower = state_.lower;
    result_.lower[0] += most_host_;
  }

  void at_end(MemoryCategory category, Bytes bytes, Work work) {
    CategoryBytes now = level_;
    now[category] += bytes;
    consider(now, now.total(), {.work = work});
    raise(now);
  }

  const Plan& plan_;
  const std::vector<StageChunk>& chunks_;
  const TimelineOptions& options_;
  std::vector<ChunkWorks> works_;
  StateMemory state_;
  Bytes messages_{0};
  CategoryBytes level_;
  Bytes total_{0};
  Bytes peak_total_{-1};
  Bytes host_{0};
  Bytes most_host_{0};
  std::vector<std::int64_t> in_flight_;  // by chunk
  std::int64_t pieces_ = 0;
  MemoryTimeline result_;
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
  const std::string block = moment.kind == kEmbeddingBlock ? "embedding"
                            : moment.kind == kHeadBlock    ? "head"
                                                           : fmt::format("layer {}", moment.layer);
  return fmt::format("{} of microbatch {}, {}{}", name_of(moment.work), moment.microbatch,
                     with_chunk ? fmt::format("chunk {}, ", moment.chunk) : "", block);
}

std::int64_t replayed_microbatches(const PipelineShape& shape) {
  const std::int64_t least = 3 * shape.stages;
  const std::int64_t round = 2 * shape.stages;
  const std::int64_t more = shape.microbatches - least;
  return more < round ? shape.microbatches : least + more % round;
}

MemoryTimeline memory_timeline(const BlockMemories& model, const Plan& plan, std::int64_t stage,
                               const std::vector<StageChunk>& chunks,
                               const TimelineOptions& options) {
  return Replay(model, plan, chunks, options).run(stage);
}

}  // namespace orrery
