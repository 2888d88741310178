// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/chunk_templates.h"

#include <algorithm>
#include <utility>

namespace orrery::parallel {
namespace {

using Placed = std::vector<PlacedStep>;

/// Steps of one pass through a chunk: messages stand at its ends.
struct Passage {
  Placed begin;
  Placed body;
  Placed end;
};

bool always(const Step&) {
  return true;
}

/// Nobody but the optimizer waits for these steps of a backward.
bool of_weights(const Step& step) {
  return step.part == Part::weight_gradient || step.part == Part::accumulate ||
         step.reads == Value::input || step.writes == Value::input;
}

template <class Takes>
void append(Placed& placed, const std::vector<Step>& steps, const Moment& when, Takes&& takes,
            int block = kNoBlock) {
  for (const Step& step : steps) {
    if (takes_part(step, when) && takes(step)) {
      placed.push_back({&step, block});
    }
  }
}

Passage forward_passage(const Draft& draft, const ChunkDraft& chunk, const Moment& when) {
  Passage passage;
  std::size_t most = chunk.forward_begin.size() + chunk.forward_end.size();
  for (const Block& block : chunk.blocks) {
    most += block.before_forward.size() + draft.steps[block.kind].forward.size();
  }
  passage.body.reserve(most);
  append(passage.begin, chunk.forward_begin, when, always);
  for (int b = 0; b < static_cast<int>(chunk.blocks.size()); ++b) {
    const Block& block = chunk.blocks[static_cast<std::size_t>(b)];
    append(passage.body, block.before_forward, when, always);
    append(passage.body, draft.steps[block.kind].forward, when, always, b);
  }
  append(passage.end, chunk.forward_end, when, always);
  return passage;
}

std::size_t most_of_backward(const Draft& draft, const ChunkDraft& chunk) {
  std::size_t most =
      chunk.backward_begin.size() + chunk.backward_end.size() + chunk.after_weights.size();
  for (const Block& block : chunk.blocks) {
    const BlockSteps& steps = draft.steps[block.kind];
    most += block.before_backward.size() + block.after_backward.size() + steps.backward.size() +
            (block.recomputes ? steps.recompute.size() : 0);
  }
  return most;
}

Passage backward_passage(const Draft& draft, const ChunkDraft& chunk, BackwardPart part,
                         const Moment& when) {
  Passage passage;
  const bool whole = part == BackwardPart::whole;
  const bool weights = part == BackwardPart::weight_gradients;
  passage.body.reserve(most_of_backward(draft, chunk));
  if (!weights) {
    append(passage.begin, chunk.backward_begin, when, always);
    append(passage.end, chunk.backward_end, when, always);
  }
  if (whole || weights) {
    append(passage.end, chunk.after_weights, when, always);
  }
  for (int b = static_cast<int>(chunk.blocks.size()) - 1; b >= 0; --b) {
    const Block& block = chunk.blocks[static_cast<std::size_t>(b)];
    const BlockSteps& steps = draft.steps[block.kind];
    const auto runs = [&](const Step& step) {
      return block.recomputes || step.node.phase != plan::StepPhase::recompute;
    };
    const auto takes = [&](const Step& step) {
      return runs(step) && (whole || weights == of_weights(step));
    };
    if (!weights) {
      append(passage.body, block.before_backward, when, always);
      append(passage.body, steps.recompute, when, runs, b);
    }
    append(passage.body, steps.backward, when, takes, b);
    if (whole || weights) {
      append(passage.body, block.after_backward, when, always);
    }
  }
  return passage;
}

footprint::ChunkPass pass_of(BackwardPart part) {
  switch (part) {
    case BackwardPart::whole:
      return footprint::ChunkPass::backward;
    case BackwardPart::input_gradients:
      return footprint::ChunkPass::input_gradient;
    case BackwardPart::weight_gradients:
      return footprint::ChunkPass::weight_gradient;
  }
  return footprint::ChunkPass::backward;
}

/// The body is by far the longest: the others join it.
StepList listed(std::string name, const StepLane& lane, Passage passage) {
  Placed& steps = passage.body;
  steps.insert(steps.begin(), passage.begin.begin(), passage.begin.end());
  steps.insert(steps.end(), passage.end.begin(), passage.end.end());
  return {.name = std::move(name), .lanes = {lane}, .steps = std::move(steps)};
}

/// Adds two bodies, each a lane.
class PairBuilder {
 public:
  PairBuilder(Placed& steps, const Passage& forward, const Passage& backward)
      : steps_(steps), lanes_{Lane{forward.body}, Lane{backward.body}} {}

  void one_after_the_other() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      while (!lanes_[lane].done()) {
        step(lane);
      }
    }
  }

  /// Leaves a lane where compute would wait for what communication writes.
  void interleaved() {
    std::uint32_t lane = 1;
    while (!lanes_[0].done() || !lanes_[1].done()) {
      if (may_step(lane)) {
        step(lane);
      }
      while (may_step(lane) && !blocked(lane)) {
        step(lane);
      }
      lane = 1 - lane;
    }
  }

 private:
  struct Lane {
    const Placed& steps;
    std::size_t next = 0;
    std::array<bool, kValueCount> pending{};  ///< by Value: written by communication, not read yet
    int block = kNoBlock;                     ///< that runs, or ran last
    int begun = 0;                            ///< blocks

    bool done() const { return next == steps.size(); }
    bool begins_block() const {
      const int following = done() ? block : steps[next].block;
      return following != kNoBlock && following != block;
    }
  };

  /// The forward begins no block before the backward has done as many.
  bool may_step(std::size_t lane) const {
    const Lane& own = lanes_[lane];
    const Lane& other = lanes_[1 - lane];
    const bool waits =
        lane == 0 && own.begins_block() && !other.done() &&
        (own.begun > other.begun || (own.begun == other.begun && !other.begins_block()));
    return !own.done() && !waits;
  }

  bool blocked(std::size_t lane) const {
    const Step& step = *lanes_[lane].steps[lanes_[lane].next].step;
    return step.node.stream == plan::StepStream::compute &&
           lanes_[lane].pending[static_cast<std::size_t>(step.reads)];
  }

  void step(std::uint32_t lane) {
    Lane& own = lanes_[lane];
    own.begun += own.begins_block() ? 1 : 0;
    const PlacedStep& placed = own.steps[own.next++];
    own.block = placed.block == kNoBlock ? own.block : placed.block;
    const bool computes = placed.step->node.stream == plan::StepStream::compute;
    if (computes) {
      own.pending[static_cast<std::size_t>(placed.step->reads)] = false;
    }
    if (placed.step->writes != Value::none) {
      own.pending[static_cast<std::size_t>(placed.step->writes)] = !computes;
    }
    steps_.push_back({placed.step, placed.block, lane});
  }

  Placed& steps_;
  std::array<Lane, 2> lanes_;
};

}  // namespace

StepList forward_steps(const Draft& draft, const ChunkDraft& chunk, std::string name,
                       const Moment& when) {
  return listed(std::move(name), {.chunk = &chunk}, forward_passage(draft, chunk, when));
}

StepList backward_steps(const Draft& draft, const ChunkDraft& chunk, BackwardPart part,
                        std::string name, const Moment& when) {
  return listed(std::move(name), {.chunk = &chunk, .pass = pass_of(part)},
                backward_passage(draft, chunk, part, when));
}

StepList pair_steps(const Draft& draft, const ChunkDraft& forward, const ChunkDraft& backward,
                    std::string name, std::int64_t step) {
  const Moment when(When::always, step);
  const Passage passages[] = {forward_passage(draft, forward, when),
                              backward_passage(draft, backward, BackwardPart::whole, when)};
  StepList list{
      .name = std::move(name),
      .lanes = {{.chunk = &forward}, {.chunk = &backward, .pass = footprint::ChunkPass::backward}},
      .steps = {}};
  const auto add = [&](Placed Passage::*part) {
    for (std::uint32_t lane = 0; lane < 2; ++lane) {
      for (const PlacedStep& placed : passages[lane].*part) {
        list.steps.push_back({placed.step, placed.block, lane});
      }
    }
  };
  add(&Passage::begin);
  for (std::uint32_t lane = 0; lane < 2; ++lane) {
    list.steps.push_back({&draft.pair_ready, kNoBlock, lane});
  }
  PairBuilder pair(list.steps, passages[0], passages[1]);
  if (draft.interleaves_pairs) {
    pair.interleaved();
  } else {
    pair.one_after_the_other();
  }
  add(&Passage::end);
  return list;
}

bool has_variant(const Draft& draft, const ChunkDraft& chunk, When when) {
  const auto has = [&](const std::vector<Step>& steps) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& step) { return step.when == when; });
  };
  return has(chunk.forward_begin) || has(chunk.forward_end) || has(chunk.backward_end) ||
         std::any_of(chunk.blocks.begin(), chunk.blocks.end(), [&](const Block& block) {
           return has(draft.steps[block.kind].forward) || has(block.before_forward) ||
                  has(block.before_backward) || has(block.after_backward);
         });
}

}  // namespace orrery::parallel
