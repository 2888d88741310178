// SPDX-License-Identifier: Apache-2.0
/// The issue lists of a workload's source, written out, and where all of them repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/source.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {

inline std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// Between `from` and `until` a stage's list repeats every `length` instances. In a round every
/// stage issues that many.
struct Repetition {
  std::int64_t length = 0;  ///< 0: the lists do not repeat, or not all alike
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> until;
  /// Rounds that the lists lack: each stage's has so many more of them before the last.
  std::int64_t omitted = 0;

  /// That every stage lists.
  std::int64_t rounds() const;
};

struct IssueLists {
  std::vector<std::vector<int>> templates;  ///< [stage][instance] -> template of the program
  Repetition repetition;
};

/// A plan that differs in its global batch alone and has the same lists but for `omitted` rounds of
/// their repetition.
struct ShortPlan {
  plan::Plan plan;
  std::int64_t omitted = 0;
};
/// Of 1F1B, interleaved or not: with eight rounds, or the warm-up and some microbatches. Other
/// plans, and those with fewer microbatches, are themselves.
ShortPlan shortened(const plan::Plan& plan);

/// Finds the repetition around the middle of the lists. Schedules whose stages do all of one thing
/// before the next (gpipe) repeat nowhere in this sense.
IssueLists issue_lists(const graph::IssueList& source, std::size_t stages);

/// Which template a list issues for which piece of its pipeline schedule, so that the
/// same templates can be issued for another number of microbatches without lowering again.
class IssueRules {
 public:
  /// Reads them off the list and the schedule of the plan that it was made for.
  IssueRules(const graph::IssueList& source, const plan::Plan& plan);

  /// Lists of a plan that differs in its global batch alone. Nothing when it has a piece of work
  /// that the lowered plan had not.
  std::optional<IssueLists> lists(const plan::Plan& plan) const;

 private:
  /// Number of a kind of piece: by direction, chunk, and whether its microbatch is first or last.
  std::size_t kind_of(const plan::PipelineShape& shape, const plan::PipelineSlot& slot) const;

  std::vector<std::vector<int>> templates_;  ///< [stage][kind] -> template; -1: not seen
  std::vector<int> last_;                    ///< [stage] the end of the step
};

}  // namespace orrery::estimate
