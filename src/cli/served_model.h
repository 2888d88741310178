// SPDX-License-Identifier: Apache-2.0
/// --model, --engine, --machine and --formats of commands that serve a model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serving/engine.h"
#include "serving/stated_fields.h"
#include "workload/zoo/model.h"

namespace orrery::cli {

struct ServedModel {
  zoo::Model model;
  serving::Engine engine;  ///< with the formats of the model's checkpoint where it states none
};
/// The engine is vllm@0.20 unless given; `fields` stand instead of those of its file.
ServedModel load_served(const std::optional<std::string>& model,
                        const std::optional<std::string>& engine, Error& mistakes,
                        const std::vector<serving::StatedField>& fields = {});

}  // namespace orrery::cli
