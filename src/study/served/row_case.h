// SPDX-License-Identifier: Apache-2.0
/// A row of a table of serving as what is run.
#pragma once

#include <string>
#include <vector>

#include "serving/metrics.h"
#include "study/profile.h"

namespace orrery::served {

struct RowCase {
  std::string model;
  std::string machine;  ///< "": the profile's
  serving::Engine engine;
  study::ServedRequests requests;
};

/// Applies settings in order, the engine's name first. Mistakes: values that do not parse.
Result<RowCase> row_case(const std::vector<study::Setting>& settings);

/// The requests that the case describes. Drawn gaps are scaled so that all arrive in the time that
/// their number takes at the rate.
std::vector<requests::Request> requests_of(const study::ServedRequests& described);

/// The measure of a served run, in its unit.
double value_of_measure(study::Measure measure, const serving::Metrics& metrics);

/// Runs it.
Result<serving::Run> serve_case(const RowCase& row, const machine::Machine& machine,
                                const std::vector<requests::Request>& requests);

}  // namespace orrery::served
