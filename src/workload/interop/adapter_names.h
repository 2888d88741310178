// SPDX-License-Identifier: Apache-2.0
/// Modules with low-rank adapters by the names that training programs have for them. Internal to
/// this folder.
#pragma once

#include <string>
#include <string_view>

namespace orrery::interop {

/// Adds what a module's name means to a plan's list of targets (workload/plan/lora_targets.h), once
/// each: "model.layers.*.q_proj" is attention_qkv, "all-linear" is all. Returns false, and adds
/// nothing, where the name is unknown.
bool add_adapter_target(std::string_view module, std::string& targets);

}  // namespace orrery::interop
