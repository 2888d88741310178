// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/chunk_templates.h"

#include <algorithm>
#include <utility>

#include "workload/parallel/template_builder.h"

namespace orrery::parallel {
namespace {

struct Placed {
  const Step* step = nullptr;
  int block = TemplateBuilder::kNoBlock;
};

/// Steps of one pass through a chunk: messages stand at its ends.
struct Passage {
  std::vector<Placed> begin;
  std::vector<Placed> body;
  std::vector<Placed> end;
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
void append(std::vector<Placed>& placed, const std::vector<Step>& steps, When when, Takes&& takes,
            int block = TemplateBuilder::kNoBlock) {
  for (const Step& step : steps) {
    if ((step.when == When::always || step.when == when) && takes(step)) {
      placed.push_back({&step, block});
    }
  }
}

Passage forward_passage(const Draft& draft, const ChunkDraft& chunk, When when) {
  Passage passage;
  append(passage.begin, chunk.forward_begin, when, always);
  for (int b = 0; b < static_cast<int>(chunk.blocks.size()); ++b) {
    const Block& block = chunk.blocks[static_cast<std::size_t>(b)];
    append(passage.body, block.before_forward, when, always);
    append(passage.body, draft.steps[block.kind].forward, when, always, b);
  }
  append(passage.end, chunk.forward_end, when, always);
  return passage;
}

Passage backward_passage(const Draft& draft, const ChunkDraft& chunk, BackwardPart part,
                         When when) {
  Passage passage;
  const bool whole = part == BackwardPart::whole;
  const bool weights = part == BackwardPart::weight_gradients;
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

const footprint::ChunkWork& memory_of(const ChunkDraft& chunk, footprint::ChunkPass pass) {
  return chunk.memory[static_cast<std::size_t>(pass)];
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

graph::Template built(std::string name, const Draft& draft, const RoleDraft& role,
                      const ChunkDraft& chunk, const Passage& passage, footprint::ChunkPass pass) {
  TemplateBuilder builder(
      std::move(name), draft,
      {{.blocks = &chunk.blocks, .backward = pass != footprint::ChunkPass::forward}});
  for (const std::vector<Placed>* part : {&passage.begin, &passage.body, &passage.end}) {
    for (const Placed& placed : *part) {
      builder.add(*placed.step, placed.block);
    }
  }
  builder.allocate(memory_of(chunk, pass));
  builder.allocate_messages(role.messages);
  return builder.finish();
}

/// Adds two bodies, each a lane.
class PairBuilder {
 public:
  PairBuilder(TemplateBuilder& builder, const Passage& forward, const Passage& backward)
      : builder_(builder), lanes_{Lane{forward.body}, Lane{backward.body}} {}

  void one_after_the_other() {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      while (!lanes_[lane].done()) {
        step(lane);
      }
    }
  }

  /// Leaves a lane where compute would wait for what communication writes.
  void interleaved() {
    std::size_t lane = 1;
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
    const std::vector<Placed>& steps;
    std::size_t next = 0;
    std::array<bool, kValueCount> pending{};  ///< by Value: written by communication, not read yet
    int block = TemplateBuilder::kNoBlock;    ///< that runs, or ran last
    int begun = 0;                            ///< blocks

    bool done() const { return next == steps.size(); }
    bool begins_block() const {
      const int following = done() ? block : steps[next].block;
      return following != TemplateBuilder::kNoBlock && following != block;
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

  void step(std::size_t lane) {
    Lane& own = lanes_[lane];
    own.begun += own.begins_block() ? 1 : 0;
    const Placed& placed = own.steps[own.next++];
    own.block = placed.block == TemplateBuilder::kNoBlock ? own.block : placed.block;
    const bool computes = placed.step->node.stream == plan::StepStream::compute;
    if (computes) {
      own.pending[static_cast<std::size_t>(placed.step->reads)] = false;
    }
    if (placed.step->writes != Value::none) {
      own.pending[static_cast<std::size_t>(placed.step->writes)] = !computes;
    }
    builder_.add(*placed.step, placed.block, lane);
  }

  TemplateBuilder& builder_;
  std::array<Lane, 2> lanes_;
};

}  // namespace

graph::Template forward_template(const Draft& draft, const RoleDraft& role, const ChunkDraft& chunk,
                                 std::string name, When when) {
  return built(std::move(name), draft, role, chunk, forward_passage(draft, chunk, when),
               footprint::ChunkPass::forward);
}

graph::Template backward_template(const Draft& draft, const RoleDraft& role,
                                  const ChunkDraft& chunk, BackwardPart part, std::string name,
                                  When when) {
  return built(std::move(name), draft, role, chunk, backward_passage(draft, chunk, part, when),
               pass_of(part));
}

graph::Template pair_template(const Draft& draft, const RoleDraft& role, const ChunkDraft& forward,
                              const ChunkDraft& backward, std::string name) {
  const Passage passages[] = {forward_passage(draft, forward, When::always),
                              backward_passage(draft, backward, BackwardPart::whole, When::always)};
  TemplateBuilder builder(
      std::move(name), draft,
      {{.blocks = &forward.blocks}, {.blocks = &backward.blocks, .backward = true}});
  const auto add = [&](std::vector<Placed> Passage::*part) {
    for (std::size_t lane = 0; lane < 2; ++lane) {
      for (const Placed& placed : passages[lane].*part) {
        builder.add(*placed.step, placed.block, lane);
      }
    }
  };
  add(&Passage::begin);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    builder.add(wait_step("pair_ready", Value::flow, plan::StepPhase::forward),
                TemplateBuilder::kNoBlock, lane);
  }
  PairBuilder pair(builder, passages[0], passages[1]);
  if (draft.interleaves_pairs) {
    pair.interleaved();
  } else {
    pair.one_after_the_other();
  }
  add(&Passage::end);
  builder.allocate(memory_of(forward, footprint::ChunkPass::forward), 0);
  builder.allocate(memory_of(backward, footprint::ChunkPass::backward), 1);
  builder.allocate_messages(role.messages);
  return builder.finish();
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
