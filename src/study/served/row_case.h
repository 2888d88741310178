// SPDX-License-Identifier: Apache-2.0
/// A row of a table of serving as what is run.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/serve.h"
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

/// Returns the requests that the case describes. Lengths are drawn uniformly from `least` of the
/// stated ones on, answers of a histogram are its quantiles in an order that spreads them. Drawn
/// gaps are scaled so that all arrive in the time that their number takes at the rate.
std::vector<requests::Request> requests_of(const study::ServedRequests& described);

/// Returns how a row with these cells, by column, disagrees with itself; empty: it does not, or
/// lacks a number above 0.
std::string disagreement(const study::Agreement& agreement,
                         const std::function<std::string_view(const std::string&)>& cell);

/// Returns the model that a row names: as `--model` does, also by its name on the hub without an
/// owner, or with a format (-FP8, -NVFP4 ...), which other columns state.
Result<zoo::Model> named_model(const std::string& of_row);

struct RowParts {
  zoo::Model model;
  machine::Machine machine;
};

/// Returns what the row names; `machine` where it names none.
Result<RowParts> parts_of(const RowCase& row, const machine::Machine& machine);

/// Runs it.
Result<serving::Run> serve_case(const RowCase& row, const RowParts& parts,
                                const std::vector<requests::Request>& requests);

/// Returns what a device holds of the weights, whether or not the cache has room beside them.
Result<Bytes> weights_of(const RowCase& row, const RowParts& parts);

}  // namespace orrery::served
