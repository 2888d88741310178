// SPDX-License-Identifier: Apache-2.0
/// Rows of a table of serving as runs, and their predictions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/served/row_case.h"
#include "study/validate.h"

namespace orrery::served {

/// A run and the figures that it is compared with.
struct Task {
  RowCase row;
  std::vector<requests::Request> requests{};  ///< of run_task; with `of_requests` of the table
  std::vector<study::ValidationRow> figures;
  std::vector<study::Measure> measures;  ///< of the figures; none with `of_requests`
  std::string where;
  bool of_requests = false;
};

/// Returns whether runs on the machine of that name are wanted.
using WantedMachine = std::function<bool(const std::string&)>;

/// Returns the runs of the rows (table.h). Mistakes: columns that the profile asks for and the
/// table lacks, no row with a published figure; what is wrong with a row alone is its figures'
/// problem, as is a machine that is not wanted.
Result<std::vector<Task>> published_tasks(const study::ValidationProfile& profile,
                                          const CsvTable& table, const WantedMachine& wanted = {});

/// Serves the requests and predicts the figures. `machine`: where the row names none.
void run_task(Task& task, const machine::Machine& machine);

}  // namespace orrery::served
