// SPDX-License-Identifier: Apache-2.0
/// Bounds on the step times of very many plans that differ in some fields: one question for all of
/// them, as a program asks that searches by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

/// One field of the plan by row: row i has values[rows[i]]. "devices" is a column too.
struct FieldColumn {
  std::string field;
  std::vector<std::string> values;  ///< texts as in a plan file
  std::vector<std::uint32_t> rows;
};

/// PlanBounds are the answers by row; NaN where the plan cannot run.
struct PlanBounds {
  std::vector<double> least_time_s;        ///< estimate::QuickBound::least_time()
  std::vector<double> least_memory_bytes;  ///< of the fullest device, at the least
  std::vector<std::int32_t> mistake;       ///< number of the text below; -1: the plan runs
  std::vector<std::string> mistakes;       ///< distinct ones, in the order of the first row of each
};

/// Returns the bounds of `base` with the columns over it, of which every row is completed as a plan
/// of the command is (plan/defaults.h). `devices` 0: what each plan needs.
///
/// Requires:  columns of equal length.
/// Mistakes:  unknown fields, values that do not parse, rows beyond the values. What only a row is
///            wrong in is an answer, as are `parts` and boost clocks, which estimate_step() takes.
/// Cost:      some microseconds a row once the blocks that its fields shape have been timed; every
///            50,000 rows are one thread's, which times them for itself.
Result<PlanBounds> plan_bounds(const zoo::Model& model, const machine::Machine& machine,
                               const plan::PlacedPlan& base, std::int64_t devices,
                               const std::vector<FieldColumn>& columns);

}  // namespace orrery::study
