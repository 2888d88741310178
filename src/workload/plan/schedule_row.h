// SPDX-License-Identifier: Apache-2.0
/// A pipeline schedule as a row: everything that lowering, memory, checks, bounds and searches ask
/// of it. docs/howto/schedule.md adds one to the list in schedules.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/plan/schedule.h"
#include "workload/plan/schedule_runs.h"

namespace orrery::plan {

struct ScheduleRow {
  Schedule value = Schedule{UINT8_MAX};  ///< left out by a schedule that the code does not name
  std::string_view name;
  std::string_view sentence;         ///< for help texts
  std::string_view torchtitan = {};  ///< its name there

  // The order of passes of a stage: all forwards, then all backwards; or so many forwards, then a
  // forward and a backward in turn, then the rest; or as listed.
  bool forwards_first = false;
  std::int64_t (*warmup)(const PipelineShape&, std::int64_t stage) = nullptr;
  RunList (*runs)(const PipelineShape&, std::int64_t stage) = nullptr;
  bool whole_backwards = true;   ///< there are passes of both gradients at once
  bool split_backwards = false;  ///< there are passes of one gradient alone
  /// Says whether `overlap_ep: microbatch` finds a forward beside a backward to hide in.
  bool in_pairs = false;

  // How the model lies on the stages.
  std::int64_t least_chunks = 1;  ///< plan.chunks
  std::int64_t most_chunks = 1;
  bool folds = false;  ///< chunk 1 hands its activations back, to the stage before
  /// Every part is held twice, by chunk 0 of a stage and chunk 1 of its mirror image, and half of
  /// the microbatches enter at either end.
  bool both_ends = false;

  // What it takes and who tries it.
  std::int64_t least_stages = 1;
  bool by_rounds = false;  ///< microbatches in groups of p, a chunk's after the other's
  bool searched = true;    ///< the planner tries it unasked

  /// A replica's microbatches are a multiple of this.
  std::int64_t unit(std::int64_t stages) const { return by_rounds ? stages : both_ends ? 2 : 1; }
};

/// Returns all of them: those that the code names in the order of the enumeration, then others by
/// name.
const std::vector<ScheduleRow>& schedules();

inline const ScheduleRow& row_of(Schedule schedule) {
  return schedules()[static_cast<std::size_t>(schedule)];
}

/// The names of those of which this holds: "1f1b, interleaved or dualpipe".
std::string schedules_that(const std::function<bool(const ScheduleRow&)>& holds);

/// Returns the schedules of this library, and the list that schedules() puts in order: these,
/// unless a program that links it defines a schedule_list() of its own.
std::vector<ScheduleRow> shipped_schedules();
std::vector<ScheduleRow> schedule_list();

}  // namespace orrery::plan
