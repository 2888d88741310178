// SPDX-License-Identifier: Apache-2.0
/// Unquantized modules are what a quantised plan leaves in the compute type, beside what no recipe
/// quantises (quantize.h): whole layers at both ends of the model (unquantized_start_layers,
/// unquantized_end_layers) and modules of every layer (unquantized_modules).
///
/// Ignores:  modules in a second narrow type (Nemotron 3 Super's output projections of Mamba in
///           mxfp8 beside nvfp4).
/// Source:   Megatron-LM's --first-last-layers-bf16; NVIDIA 2026, "Nemotron 3 Super"
///           (arXiv:2604.12374), table 3: the last 15 % of the layers, attention's and the latents'
///           projections and multi-token prediction in bf16.
#pragma once

#include <vector>

#include "base/result.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Returns whether the plan has layers at the ends that are not quantised.
bool has_unquantized_layers(const Plan& plan);
/// Returns whether this one, 0 <= layer < model.layers, is.
bool is_unquantized_layer(const Plan& plan, const zoo::Model& model, std::int64_t layer);

/// Marks those operators of a block that are of an unquantised module.
void mark_unquantized(std::vector<zoo::ModelOperator>& block, const Plan& plan);

/// Mistakes: layers or modules without a quantization; delayed scales, which are of all layers at
/// once, with layers that have none; more layers than there are; modules that the model lacks, with
/// "did you mean".
Result<void> check_unquantized(const Plan& plan, const zoo::Model& model);

}  // namespace orrery::plan
