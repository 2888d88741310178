// SPDX-License-Identifier: Apache-2.0
/// The issue lists of all stages, evaluated in the order of their dependencies.
///
///   Every stage takes its instances in turn: an instance waits for its messages, maps the stage's
///   clocks (pass_map.h), and its messages arrive at other stages. There is no queue of events: a
///   stage goes on until something it waits for has not been said yet.
///
///   Periods: when all lists repeat (issue_lists.h) and after some rounds every clock, message and
///   communication in flight is where it was some rounds before, T later, the same rounds follow
///   as often as the lists repeat, each T later; they are skipped. Equality is to the picosecond.
///   Where no round repeats another (reductions that compute leaves further and further behind),
///   kMostRounds are evaluated, and the others but the last are taken to last as long as the mean
///   of the last few.
///   A clock other than compute may fall back: outputs that did not change while it did will not
///   change when it falls back further, because they are convex in it (max-plus).
///
///   Contention across instances, in first order: kernels that a stage runs beside messages and
///   reductions of its other instances, or of its neighbours', end later by what that takes from
///   them. What is known only after the kernels have been evaluated delays the next ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "estimate/issue_lists.h"
#include "estimate/pass_map.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

/// A plan as it is evaluated.
struct PreparedPlan {
  const TimedWorkload& timed;  ///< mapped (pass_map.h)
  const IssueLists& lists;
  bool jumps = true;  ///< equal layers of what runs node by node (node_run.h)

  const MappedTemplate& mapped(int template_number) const {
    return *timed.templates[static_cast<std::size_t>(template_number)];
  }

  int template_of(std::size_t stage, std::int64_t index) const {
    const int number = lists.templates[stage][static_cast<std::size_t>(index)];
    return timed.roles[stage][static_cast<std::size_t>(number)];
  }

  /// Nodes of an instance that begin beside the one before it; none of one that there is not.
  std::span<const std::uint32_t> ahead(std::size_t stage, std::int64_t index) const {
    return index < std::ssize(lists.templates[stage])
               ? std::span<const std::uint32_t>(mapped(template_of(stage, index)).slowed->ahead)
               : std::span<const std::uint32_t>();
  }

  /// Requires the least maps.
  const PassMap& least(std::size_t stage, std::int64_t index) const {
    return *mapped(template_of(stage, index)).least;  // NOLINT(bugprone-unchecked-optional-access)
  }
};

struct StageTime {
  Time end{0};      ///< of all but its last instance, the end of the step
  Time busy{0};     ///< of that: from when an instance could begin until its kernels were done
  Time kernels{0};  ///< of that: alone
};

struct ReplayResult {
  Time step_time{0};
  std::vector<StageTime> stages{};
  /// By stage, of the instances that were evaluated; only where stages cross one another's links.
  std::vector<std::vector<LaneSpan>> spans{};
  std::int64_t evaluated = 0;  ///< instances, of all stages
  std::int64_t jumped = 0;     ///< nodes of those that ran node by node
  /// False: of lists that lack rounds, when no period was found in those that they have; the rest
  /// is then not known.
  bool whole = true;
  bool exact = true;  ///< false: rounds that repeat nothing were taken to last as those before them
};

/// Mistakes: stages that wait for one another.
Result<ReplayResult> replay(const PreparedPlan& plan);

}  // namespace orrery::estimate
