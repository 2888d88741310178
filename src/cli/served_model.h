// SPDX-License-Identifier: Apache-2.0
/// --model, --engine, --machine and --formats of commands that serve a model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serving/engine.h"
#include "serving/plan_search.h"
#include "workload/zoo/model.h"

namespace orrery::cli {

struct ServedModel {
  zoo::Model model;
  serving::Engine engine;  ///< with the formats of the model's checkpoint where it states none
};
/// The engine is vllm@0.19 unless given.
ServedModel load_served(const std::optional<std::string>& model,
                        const std::optional<std::string>& engine, Error& mistakes);

/// Returns the parts of a list by commas; none where there is no text.
std::vector<std::string> listed(const std::optional<std::string>& text);
/// Returns the formats of numbers that --formats lists.
std::vector<serving::Format> read_formats(const std::optional<std::string>& names, Error& mistakes);

}  // namespace orrery::cli
