// SPDX-License-Identifier: Apache-2.0
/// Issue lists of a training step and of a run of several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/source.h"
#include "workload/parallel/draft.h"

namespace orrery::parallel {

/// Template numbers of one chunk; those that the schedule does not use are -1.
struct ChunkTemplates {
  int forward_first = -1;
  int forward = -1;
  int backward = -1;
  int backward_last = -1;
  int input_gradient = -1;
  int weight_gradient = -1;
  int weight_gradient_last = -1;
  std::vector<int> pair{};  ///< by chunk of the backward beside this one's forward
};

struct RoleTemplates {
  plan::StageSchedule schedule;
  std::int64_t last_microbatch = 0;
  std::vector<ChunkTemplates> chunks;
  int finish = 0;
};

/// The pipeline schedule, then the end of the step.
class TrainingStep final : public graph::IssueList {
 public:
  explicit TrainingStep(std::vector<RoleTemplates> roles) : roles_(std::move(roles)) {}

  std::unique_ptr<graph::Source> restart() const override {
    return std::make_unique<TrainingStep>(*this);
  }
  std::int64_t length(int role) const override {
    return roles_[static_cast<std::size_t>(role)].schedule.size() + 1;
  }
  graph::Instance at(int role, std::int64_t index) const override;
  /// Returns the period of the schedule, without the microbatches at its ends that run other
  /// templates.
  std::optional<graph::Period> period(int role) const override;

 private:
  std::vector<RoleTemplates> roles_;
};

/// The sorts of steps of a run: two steps are of one sort if the same steps of the draft take part
/// in both. From step `settled()` on sorts repeat every `cycle()` steps.
class StepSorts {
 public:
  StepSorts(const Draft& draft, std::int64_t steps);

  std::int64_t settled() const { return settled_; }
  std::int64_t cycle() const { return cycle_; }
  std::size_t count() const { return examples_.size(); }
  /// Returns the first step of a sort.
  std::int64_t example(std::size_t sort) const { return examples_[sort]; }
  std::size_t of(std::int64_t step) const {
    const std::int64_t like = step < settled_ ? step : settled_ + (step - settled_) % cycle_;
    return sorts_[static_cast<std::size_t>(like)];
  }

 private:
  std::int64_t settled_ = 0;
  std::int64_t cycle_ = 1;
  std::vector<std::size_t> sorts_;      ///< by step, up to one cycle behind settled_
  std::vector<std::int64_t> examples_;  ///< by sort
};

/// Several training steps, one after the other, then the end of the run, if there is any.
///
///   instance i = instance i mod n of step i div n,  n instances a step
class TrainingRun final : public graph::IssueList {
 public:
  /// `by_sort`: a step of each sort. `drains`: by role, the template of the end of the run; -1:
  /// none. Requires steps >= 1; roles whose steps all have as many instances.
  TrainingRun(std::vector<TrainingStep> by_sort, StepSorts sorts, std::int64_t steps,
              std::vector<int> drains)
      : by_sort_(std::move(by_sort)),
        sorts_(std::move(sorts)),
        steps_(steps),
        drains_(std::move(drains)) {}

  std::unique_ptr<graph::Source> restart() const override {
    return std::make_unique<TrainingRun>(*this);
  }
  std::int64_t steps() const override { return steps_; }
  std::int64_t length(int role) const override {
    return by_sort_.front().length(role) * steps_ + (drain(role) < 0 ? 0 : 1);
  }
  /// Returns the instance; the end of the run belongs to the step behind the last.
  graph::Instance at(int role, std::int64_t index) const override;
  /// Returns the period of whole steps, if two cycles of them are left; of a run of one step, its
  /// own.
  std::optional<graph::Period> period(int role) const override;
  std::vector<graph::Period> periods(int role, std::int64_t from) const override;

 private:
  int drain(int role) const { return drains_[static_cast<std::size_t>(role)]; }
  const TrainingStep& of_step(std::int64_t step) const { return by_sort_[sorts_.of(step)]; }

  std::vector<TrainingStep> by_sort_;
  StepSorts sorts_;
  std::int64_t steps_;
  std::vector<int> drains_;
};

}  // namespace orrery::parallel
