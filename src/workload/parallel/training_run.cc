// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/training_run.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

#include "base/lists.h"

namespace orrery::parallel {
namespace {

int template_of(const ChunkTemplates& chunk, const plan::PipelineSlot& work, bool last) {
  switch (work.direction) {
    case plan::Direction::forward:
      return work.microbatch == 0 ? chunk.forward_first : chunk.forward;
    case plan::Direction::backward:
      return last ? chunk.backward_last : chunk.backward;
    case plan::Direction::input_gradient:
      return chunk.input_gradient;
    case plan::Direction::weight_gradient:
      return last ? chunk.weight_gradient_last : chunk.weight_gradient;
    case plan::Direction::forward_backward:
      return chunk.pair[static_cast<std::size_t>(work.backward_chunk)];
  }
  assert(false && "a direction");
  return 0;
}

/// The turns of a draft's steps that leave some steps out.
class Turns {
 public:
  explicit Turns(const Draft& draft) {
    for (const BlockSteps& block : draft.steps) {
      add({&block.forward, &block.recompute, &block.backward});
    }
    for (const RoleDraft& role : draft.roles) {
      add({&role.finish});
      for (const ChunkDraft& chunk : role.chunks) {
        add({&chunk.forward_begin, &chunk.forward_end, &chunk.backward_begin, &chunk.backward_end,
             &chunk.after_weights});
        for (const Block& block : chunk.blocks) {
          add({&block.before_forward, &block.before_backward, &block.after_backward});
        }
      }
    }
  }

  std::int64_t latest_start() const {
    std::int64_t latest = 0;
    for (const Turn& turn : turns_) {
      latest = std::max<std::int64_t>(latest, turn.at);
    }
    return latest;
  }
  std::int64_t common_cycle() const {
    std::int64_t cycle = 1;
    for (const Turn& turn : turns_) {
      cycle = std::lcm(cycle, std::int64_t{turn.every});
    }
    return cycle;
  }
  /// Returns which of the turns hold in the step.
  std::vector<bool> holding(std::int64_t step) const {
    return mapped(turns_, [&](const Turn& turn) { return turn.holds(step); });
  }

 private:
  void add(std::initializer_list<const std::vector<Step>*> lists) {
    for (const std::vector<Step>* steps : lists) {
      for (const Step& step : *steps) {
        if (step.turn != Turn{} && std::ranges::find(turns_, step.turn) == turns_.end()) {
          turns_.push_back(step.turn);
        }
      }
    }
  }

  std::vector<Turn> turns_;
};

}  // namespace

graph::Instance TrainingStep::at(int role, std::int64_t index) const {
  const RoleTemplates& templates = roles_[static_cast<std::size_t>(role)];
  if (index == templates.schedule.size()) {
    return {.template_index = templates.finish};
  }
  const plan::PipelineSlot work = templates.schedule[index];
  const ChunkTemplates& chunk = templates.chunks[static_cast<std::size_t>(work.chunk)];
  return graph::Instance{template_of(chunk, work, work.microbatch == templates.last_microbatch),
                         static_cast<int>(work.chunk), work.microbatch};
}

std::optional<graph::Period> TrainingStep::period(int role) const {
  auto period = roles_[static_cast<std::size_t>(role)].schedule.period();
  if (!period) {
    return std::nullopt;
  }
  const auto repeats = [&](std::int64_t first) {
    for (std::int64_t i = first; i < first + period->length; ++i) {
      graph::Instance later = at(role, i + period->length);
      later.microbatch -= period->microbatches;
      if (later != at(role, i)) {
        return false;
      }
    }
    return true;
  };
  const auto two_left = [&] { return period->first + 2 * period->length <= period->end; };
  while (two_left() && !repeats(period->first)) {
    period->first += period->length;
  }
  while (two_left() && !repeats(period->end - 2 * period->length)) {
    period->end -= period->length;
  }
  return two_left() ? period : std::nullopt;
}

StepSorts::StepSorts(const Draft& draft, std::int64_t steps) {
  const Turns turns(draft);
  settled_ = turns.latest_start();
  cycle_ = turns.common_cycle();
  std::map<std::vector<bool>, std::size_t> known;
  for (std::int64_t step = 0; step < std::min(steps, settled_ + cycle_); ++step) {
    const auto [sort, fresh] = known.try_emplace(turns.holding(step), examples_.size());
    if (fresh) {
      examples_.push_back(step);
    }
    sorts_.push_back(sort->second);
  }
}

graph::Instance TrainingRun::at(int role, std::int64_t index) const {
  const std::int64_t instances = by_sort_.front().length(role);
  const std::int64_t step = index / instances;
  graph::Instance instance{.template_index = drain(role)};
  if (step < steps_) {
    instance = of_step(step).at(role, index % instances);
  }
  instance.step = step;
  return instance;
}

std::optional<graph::Period> TrainingRun::period(int role) const {
  const std::vector<graph::Period> all = periods(role, 0);
  return all.empty() || (all.back().steps == 0 && steps_ > 1) ? std::nullopt
                                                              : std::optional(all.back());
}

std::vector<graph::Period> TrainingRun::periods(int role, std::int64_t from) const {
  const std::int64_t instances = by_sort_.front().length(role);
  std::vector<graph::Period> all;
  const std::int64_t first = from / instances;
  const std::int64_t end = std::min(steps_, first + sorts_.settled() + sorts_.cycle() + 1);
  for (std::int64_t step = first; step < end && all.empty(); ++step) {
    if (auto inner = of_step(step).period(role)) {
      inner->first += step * instances;
      inner->end += step * instances;
      if (inner->end > from) {
        all.push_back(*inner);
      }
    }
  }
  const graph::Period outer{.first = std::max(from, sorts_.settled() * instances),
                            .end = steps_ * instances,
                            .length = sorts_.cycle() * instances,
                            .microbatches = 0,
                            .steps = sorts_.cycle()};
  if (outer.first + 2 * outer.length <= outer.end) {
    all.push_back(outer);
  }
  return all;
}

}  // namespace orrery::parallel
