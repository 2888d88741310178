// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/config_node.h"

namespace orrery::sweep {

/// Returns `path` itself, but "model.layers", "model.hidden", "model.heads", "model.kv_heads",
/// "model.ffn", "model.vocab" and "model.positions" are what the model's own file calls them
/// ("model.num_hidden_layers", "model.n_layer").
std::string own_model_field(const ConfigNode& description, const std::string& path);

}  // namespace orrery::sweep
