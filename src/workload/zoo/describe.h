// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "workload/zoo/model.h"

namespace orrery::zoo {

/// Returns several lines of text for people: the shape, the exact parameters by part, and the model
/// FLOPs per token at the model's own sequence length (model_flops_per_sequence / max_positions).
/// Ends with a newline.
std::string describe(const Model& model);

}  // namespace orrery::zoo
