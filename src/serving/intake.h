// SPDX-License-Identifier: Apache-2.0
/// An Intake is what an engine makes of requests for its scheduler. Internal to this folder.
#pragma once

#include <memory>
#include <optional>

#include "serving/client.h"
#include "serving/serve.h"

namespace orrery::serving {

scheduler::Limits limits_of(const Engine& engine);
/// Tokens of its answer that max_model_len leaves.
std::int64_t answer_of(const requests::Request& request, const Engine& engine);
/// Nothing: it is too long for the engine.
std::optional<scheduler::RequestSpec> spec_of(const requests::Request& request, const Run& run,
                                              const scheduler::Scheduler& scheduler);
Served served_of(const scheduler::RequestSpec& spec, const Delivery& delivery);

}  // namespace orrery::serving
