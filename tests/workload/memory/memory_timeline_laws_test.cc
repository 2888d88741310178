// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "../plan/cases.h"
#include "most_in_flight.h"
#include "workload/memory/chunk_work.h"
#include "workload/memory/footprint.h"
#include "workload/memory/memory_timeline.h"
#include "workload/plan/shard.h"

namespace orrery::footprint {
namespace {

constexpr auto kActivations = plan::MemoryCategory::activations;

/// Blocks with numbers of their own, so that no two sums agree by chance.
BlockMemories made_blocks() {
  const auto bytes = [](std::int64_t most) {
    return Bytes(*rc::gen::inRange<std::int64_t>(0, most));
  };
  const auto block = [&] {
    BlockMemory made;
    made.parameters = *rc::gen::inRange<std::int64_t>(1, 1000);
    made.expert_parameters = made.parameters / 2;
    made.kept = bytes(10000);
    made.recomputed = bytes(5000);
    made.held = bytes(5000);
    made.held_gradients = made.held / 2;
    made.forward_work = bytes(2000);
    made.backward_work = bytes(4000);
    made.weight_work = bytes(1000);
    return made;
  };
  BlockMemories model;
  for (int kind = 0; kind < 4; ++kind) {
    model.blocks.push_back(block());
    model.plain.push_back(block());
    model.plain.back().parameters = model.blocks.back().parameters;
    model.plain.back().expert_parameters = model.blocks.back().expert_parameters;
  }
  model.blocks[plan::kHeadBlock].logits = bytes(20000);
  model.blocks[plan::kHeadBlock].logits_work = bytes(10000);
  model.boundary = bytes(3000);
  return model;
}

plan::Plan made_plan() {
  const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
  plan::Plan plan;
  plan.pp = *rc::gen::inRange<std::int64_t>(1, 5);
  plan.schedule = *rc::gen::element(plan::Schedule::gpipe, plan::Schedule::one_f_one_b,
                                    plan::Schedule::interleaved, plan::Schedule::zb_h1,
                                    plan::Schedule::zb_v, plan::Schedule::dualpipe);
  plan.schedule = plan.pp == 1 ? plan::Schedule::one_f_one_b : plan.schedule;
  plan.pp += plan.schedule == plan::Schedule::dualpipe ? plan.pp % 2 : 0;
  plan.chunks =
      plan.schedule == plan::Schedule::interleaved ? *rc::gen::inRange<std::int64_t>(2, 4) : 1;
  plan.dp = *rc::gen::inRange<std::int64_t>(1, 4);
  plan.global_batch = 2 * plan.dp * plan.pp * *rc::gen::inRange<std::int64_t>(1, 9);
  plan.zero = *rc::gen::inRange<std::int64_t>(0, 4);
  plan.reshard_after_forward = flip();
  plan.overlap_param_gather = plan.zero > 0 && flip();
  plan.overlap_grad_reduce = flip();
  plan.bucket = *rc::gen::element(0_B, 1000_B, 5000_B);
  plan.recompute_layers = *rc::gen::inRange<std::int64_t>(0, 3);
  plan.offload_activations = *rc::gen::element(0.0, 0.5, 1.0);
  plan.grad_type = *rc::gen::element(graph::DataType::fp32, graph::DataType::bf16);
  return plan;
}

std::vector<StageChunk> made_chunks(const plan::Plan& plan, std::int64_t stage) {
  std::vector<StageChunk> chunks;
  for (std::int64_t chunk = 0; chunk < plan::chunks_of(plan); ++chunk) {
    const std::int64_t layers = *rc::gen::inRange<std::int64_t>(1, 4);
    StageChunk made;
    if (stage == 0 && chunk == 0) {
      made.blocks.push_back(plan::kEmbeddingBlock);
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      made.blocks.push_back(static_cast<plan::BlockKind>(*rc::gen::inRange(2, 4)));
    }
    if (stage == plan.pp - 1 && chunk == plan::chunks_of(plan) - 1) {
      made.blocks.push_back(plan::kHeadBlock);
    }
    chunks.push_back(made);
  }
  return chunks;
}

/// The rules of memory_timeline.h read literally: a list of what is allocated, summed at every
/// block of every piece of work.
class Reference {
 public:
  Reference(const BlockMemories& model, const plan::Plan& plan,
            const std::vector<StageChunk>& chunks)
      : model_(model), plan_(plan), chunks_(chunks), state_(state_memory(model, plan, chunks)) {}

  void run(std::int64_t stage) {
    const plan::StageSchedule schedule(plan::pipeline_shape(plan_), stage);
    for (std::int64_t i = 0; i < schedule.size(); ++i) {
      const plan::PipelineSlot piece = schedule[i];
      if (piece.direction != plan::Direction::forward_backward) {
        peak = std::max(peak, fullest(piece));
        continue;
      }
      // What the moments of each add to what was there before it.
      const plan::PipelineSlot back{plan::Direction::backward, piece.backward_chunk,
                                    piece.backward_microbatch};
      const plan::PipelineSlot ahead{plan::Direction::forward, piece.chunk, piece.microbatch};
      open(piece.chunk);
      track_host(&chunks_[static_cast<std::size_t>(piece.chunk)]);
      const Bytes before = now() + messages();
      fullest(back, false);
      const std::vector<Bytes> of_backward = more_than(before);
      const Bytes between = now() + messages();
      fullest(ahead, false);
      const std::vector<Bytes> of_forward = more_than(between);
      const Bytes made = now() + messages() - between;
      close(back.chunk);
      for (std::size_t k = 0; k < of_forward.size(); ++k) {
        peak = std::max(peak, (beside() ? between : before) + of_forward[k]);
        for (std::size_t j = k; beside() && j < of_backward.size(); ++j) {
          peak = std::max(peak, before + of_forward[k] + of_backward[j]);
        }
      }
      for (const Bytes bytes : of_backward) {
        peak = std::max(peak, beside() ? peak : before + made + bytes);
      }
    }
    peak = std::max({peak, now() + state_.reduction, now() + state_.update});
  }

  Bytes peak{0};
  Bytes host{0};
  struct Live {
    bool held = false;  // between input and weight gradients
  };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Live> live{};

 private:
  bool beside() const { return plan_.overlap_ep != plan::OverlapExperts::off; }

  const BlockMemory& block(const StageChunk& chunk, std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    const auto layers =
        std::count_if(chunk.blocks.begin(), chunk.blocks.begin() + i,
                      [](plan::BlockKind kind) { return kind >= plan::kFirstLayerBlock; });
    const plan::BlockKind kind = chunk.blocks[at];
    const bool plain = kind >= plan::kFirstLayerBlock && plan_.recompute_layers > 0 &&
                       layers >= plan_.recompute_layers;
    return (plain ? model_.plain : model_.blocks)[kind];
  }
  Bytes away(const StageChunk& chunk, std::int64_t i) const {
    const bool layer =
        i >= 0 && chunk.blocks[static_cast<std::size_t>(i)] >= plan::kFirstLayerBlock;
    return layer ? block(chunk, i).kept * plan_.offload_activations : 0_B;
  }
  /// Parameters of block i as gathered, when zero 3 shards them.
  Bytes whole(const StageChunk& chunk, std::int64_t i) const {
    const bool inside = i >= 0 && i < static_cast<std::int64_t>(chunk.blocks.size());
    const bool sharded = plan_.zero == 3 && plan_.dp > 1 && inside;
    return sharded ? Bytes(2 * block(chunk, i).parameters) : 0_B;
  }
  Bytes gathered(const StageChunk& chunk, std::int64_t i, std::int64_t next) const {
    if (!plan_.reshard_after_forward) {
      return 0_B;  // in now(), of every chunk with microbatches in flight
    }
    const bool inside = next >= 0 && next < static_cast<std::int64_t>(chunk.blocks.size());
    const std::int64_t ahead = inside ? next : i;
    return whole(chunk, i) + (plan_.overlap_param_gather ? whole(chunk, ahead) : 0_B);
  }
  Bytes unreduced(const StageChunk& chunk, std::int64_t from) const {
    if (plan_.zero < 2 || plan_.dp == 1) {
      return 0_B;
    }
    Bytes done{0};
    Bytes all{0};
    Bytes largest{0};
    for (std::int64_t b = 0; b < static_cast<std::int64_t>(chunk.blocks.size()); ++b) {
      const Bytes one(4 * block(chunk, b).parameters);
      all += one;
      largest = std::max(largest, one);
      done += b >= from ? one : 0_B;
    }
    if (!plan_.overlap_grad_reduce && plan_.bucket == 0_B) {
      return done;
    }
    return std::min(
        {done, all, std::max(largest, plan_.bucket) * (plan_.overlap_grad_reduce ? 2 : 1)});
  }

  /// Runs a piece of work; its largest sum.
  Bytes fullest(const plan::PipelineSlot& piece, bool alone = true) {
    const StageChunk& chunk = chunks_[static_cast<std::size_t>(piece.chunk)];
    const auto count = static_cast<std::int64_t>(chunk.blocks.size());
    const bool ahead = piece.direction == plan::Direction::forward;
    if (ahead && alone) {
      open(piece.chunk);
    }
    sums_.clear();
    for (std::int64_t step = 0; step < count; ++step) {
      const std::int64_t i = ahead ? step : count - 1 - step;
      sums_.push_back(now() + messages() + beside(piece.direction, chunk, i));
      const std::tuple key{piece.chunk, piece.microbatch, i};
      if (ahead) {
        live[key] = {};
      } else if (piece.direction == plan::Direction::input_gradient) {
        live[key].held = true;
      } else {
        live.erase(key);
      }
    }
    track_host();
    if (!ahead && piece.direction != plan::Direction::weight_gradient && alone) {
      close(piece.chunk);
    }
    return *std::max_element(sums_.begin(), sums_.end());
  }
  std::vector<Bytes> more_than(Bytes before) const {
    std::vector<Bytes> more = sums_;
    for (Bytes& sum : more) {
      sum -= before;
    }
    return more;
  }
  /// Returns the bytes that exist only while block i runs.
  Bytes beside(plan::Direction direction, const StageChunk& chunk, std::int64_t i) const {
    const BlockMemory& one = block(chunk, i);
    switch (direction) {
      case plan::Direction::forward:
        return one.kept + one.logits + one.logits_work + one.forward_work + away(chunk, i - 1) +
               gathered(chunk, i, i + 1);
      case plan::Direction::backward:
        return one.recomputed + one.logits_work + one.backward_work + one.weight_work +
               away(chunk, i) + away(chunk, i - 1) + gathered(chunk, i, i - 1) +
               unreduced(chunk, i);
      case plan::Direction::input_gradient:
        return one.recomputed + one.logits_work + one.backward_work + one.held_gradients +
               away(chunk, i) + away(chunk, i - 1) + gathered(chunk, i, i - 1);
      default:
        return one.weight_work + unreduced(chunk, i);
    }
  }
  void open(std::int64_t chunk) { ++open_[chunk]; }
  void close(std::int64_t chunk) { --open_[chunk]; }

  Bytes messages() const {
    int most = 0;
    for (const StageChunk& chunk : chunks_) {
      most = std::max(most, (chunk.blocks.front() == plan::kEmbeddingBlock ? 0 : 2) +
                                (chunk.blocks.back() == plan::kHeadBlock ? 0 : 2));
    }
    return plan_.pp > 1 ? most * model_.boundary : 0_B;
  }
  Bytes now() const {
    Bytes sum = state_.device.total();
    for (const auto& [key, one] : live) {
      const StageChunk& chunk = chunks_[static_cast<std::size_t>(std::get<0>(key))];
      const std::int64_t i = std::get<2>(key);
      const BlockMemory& here = block(chunk, i);
      sum += one.held ? here.held : here.kept + here.logits - away(chunk, i);
    }
    for (const auto& [number, pieces] : open_) {
      const StageChunk& chunk = chunks_[static_cast<std::size_t>(number)];
      const auto blocks = static_cast<std::int64_t>(chunk.blocks.size());
      for (std::int64_t i = 0; i < blocks && pieces > 0 && !plan_.reshard_after_forward; ++i) {
        sum += whole(chunk, i);
      }
    }
    return sum;
  }
  /// `more`: a chunk whose activations arrive beside those that are there.
  void track_host(const StageChunk* more = nullptr) {
    Bytes sum{0};
    for (std::size_t i = 0; more != nullptr && i < more->blocks.size(); ++i) {
      sum += away(*more, static_cast<std::int64_t>(i));
    }
    for (const auto& [key, one] : live) {
      sum += one.held ? 0_B
                      : away(chunks_[static_cast<std::size_t>(std::get<0>(key))], std::get<2>(key));
    }
    host = std::max(host, sum);
  }

  const BlockMemories& model_;
  const plan::Plan& plan_;
  const std::vector<StageChunk>& chunks_;
  StateMemory state_;
  std::vector<Bytes> sums_;                    // at the blocks of the last piece of work
  std::map<std::int64_t, std::int64_t> open_;  // microbatches in flight by chunk
};

RC_GTEST_PROP(MemoryTimelineLaws, PeakEqualsBruteForceOverEveryBlockOfEveryPiece, ()) {
  const BlockMemories model = made_blocks();
  plan::Plan plan = made_plan();
  plan.overlap_ep = *rc::gen::element(plan::OverlapExperts::off, plan::OverlapExperts::shared,
                                      plan::OverlapExperts::microbatch);
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  Reference reference(model, plan, chunks);
  reference.run(stage);
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(timeline.peak.total() == reference.peak);
  RC_ASSERT(timeline.lower[0] == reference.host);
  RC_ASSERT(reference.live.empty());
}

RC_GTEST_PROP(MemoryTimelineLaws, ReturnsToItsStartAndIsNeverNegative, ()) {
  const BlockMemories model = made_blocks();
  const plan::Plan plan = made_plan();
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  const MemoryTimeline timeline =
      memory_timeline(model, plan, stage, chunks, {.points = 1'000'000});
  const Bytes state = state_memory(model, plan, chunks).device.total();
  RC_ASSERT(timeline.end == state_memory(model, plan, chunks).device);
  Bytes most{0};
  for (const MemoryPoint& point : timeline.points) {
    RC_ASSERT(point.bytes >= state);
    most = std::max(most, point.bytes);
  }
  RC_ASSERT(most == timeline.peak.total());
  for (const auto& category : kNames<plan::MemoryCategory>) {
    RC_ASSERT(timeline.peak[category.value] >= 0_B);
    RC_ASSERT(timeline.highest[category.value] >= timeline.peak[category.value]);
  }
}

RC_GTEST_PROP(MemoryTimelineLaws, KeptActivationsAreTheClosedFormOfTheSchedule, ()) {
  // Sum over chunks of kept bytes x pieces in flight, where that sum is largest. A piece is in
  // flight until its weight gradients, so that what it keeps until then is made the same.
  BlockMemories model = made_blocks();
  for (auto* blocks : {&model.blocks, &model.plain}) {
    for (BlockMemory& block : *blocks) {
      block.held = block.kept;
      block.held_gradients = 0_B;
    }
  }
  plan::Plan plan = made_plan();
  plan.offload_activations = 0;
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  std::vector<double> weights;
  for (const StageChunk& chunk : chunks) {
    const ChunkWork work = chunk_work(model, plan, chunk, ChunkPass::forward, 0, 0_B);
    const graph::Liveness forward = graph::liveness(work.allocations, work.moments);
    weights.push_back(static_cast<double>(forward.change[kActivations].value()));
  }
  const double expected = most_in_flight(plan::pipeline_shape(plan), stage, weights);
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(static_cast<double>(timeline.highest[kActivations].value()) == expected);
}

RC_GTEST_PROP(MemoryTimelineLaws, ManyMicrobatchesHaveThePeakOfThoseThatAreReplayed, ()) {
  const BlockMemories model = made_blocks();
  plan::Plan plan = made_plan();
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  plan.global_batch = 2 * plan.dp * plan.pp * *rc::gen::inRange<std::int64_t>(4, 12);
  Reference reference(model, plan, chunks);
  reference.run(stage);
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(timeline.peak.total() == reference.peak);
}

RC_GTEST_PROP(MemoryTimelineLaws, GrowsWithTheMicrobatch, ()) {
  cases::Case c = *cases::any_case();
  const bool fused = plan::fuses_softmax(c.model, c.plan);
  const auto small = memory_of_checked(c.model, c.plan);
  c.plan.microbatch *= 2;
  RC_PRE(fused == plan::fuses_softmax(c.model, c.plan));  // else it keeps another type
  c.plan.global_batch *= 2;
  const auto large = memory_of_checked(c.model, c.plan);
  for (std::size_t stage = 0; stage < small.size(); ++stage) {
    RC_ASSERT(large[stage].total() >= small[stage].total());
    RC_ASSERT(large[stage].highest[kActivations] == 2 * small[stage].highest[kActivations]);
  }
}

}  // namespace
}  // namespace orrery::footprint
