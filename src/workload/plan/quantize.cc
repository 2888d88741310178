// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/quantize.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "workload/plan/lora.h"
#include "workload/plan/recompute.h"
#include "workload/plan/shard.h"

namespace orrery::plan {
namespace {

/// The recipes, by Quantization without its `none`.
constexpr std::array kRecipes{
    QuantizationRecipe{.splits_sums = true, .norm_quantizes = true},
    QuantizationRecipe{.splits_sums = true, .reads_maximum = true, .norm_finds_it = true},
    QuantizationRecipe{.block_scaled = true,
                       .scale_bytes = 4.0 / 128,
                       .attention_result_bits = 12,
                       .keeps_activation_inputs = true},
    QuantizationRecipe{
        .block_scaled = true, .scale_bytes = 1.0 / 32, .microscaling = true, .transposable = false},
    QuantizationRecipe{.type = graph::DataType::fp4,
                       .scale_bytes = 1.0 / 16,
                       .reads_maximum = true,
                       .microscaling = true}};

/// e.
double plain_bytes(const Plan& plan) {
  return static_cast<double>(graph::bits_of(plan.compute_type)) / 8;
}

bool arrives_quantized(const Plan& plan) {
  return plan.quantized_params && recipe_of(plan.quantization).transposable;
}

/// Parts of a kernel's traffic, per element of the tensor.
QuantizeWork work(std::int64_t elements, double bytes, int kernels) {
  return {Bytes(elements) * bytes, kernels};
}

/// Reads the tensor, once more when it must find the maximum; writes `copies`.
QuantizeWork quantize(const Plan& plan, std::int64_t elements, int copies, bool maximum) {
  const QuantizationRecipe& recipe = recipe_of(plan.quantization);
  const double read = plain_bytes(plan) * (maximum ? 2 : 1);
  return work(elements, read + copies * recipe.element_bytes(), maximum ? 2 : 1);
}

}  // namespace

const QuantizationRecipe& recipe_of(Quantization quantization) {
  assert(quantization != Quantization::none && "the plan has a recipe");
  return kRecipes[static_cast<std::size_t>(quantization) - 1];
}

bool is_quantized(const Plan& plan, const zoo::ModelOperator& op) {
  return plan.quantization != Quantization::none && op.has_weight && !op.unquantized &&
         op.weights != zoo::Weights::adapter && op.role != graph::OperatorRole::router &&
         op.role != graph::OperatorRole::mix_project && op.role != graph::OperatorRole::logits;
}

graph::DataType gemm_type(const Plan& plan) {
  return plan.quantization == Quantization::none ? plan.compute_type
                                                 : recipe_of(plan.quantization).type;
}

Bytes exchanged_bytes(const Plan& plan, const zoo::ModelOperator& op, Bytes in_compute_type) {
  if (!is_quantized(plan, op)) {
    return in_compute_type;
  }
  return in_compute_type * (recipe_of(plan.quantization).element_bytes() / plain_bytes(plan));
}

Bytes kept_for_attention(const Plan& plan, const zoo::ModelOperator& projection,
                         Bytes in_compute_type) {
  if (!is_quantized(plan, projection) || projection.weights == zoo::Weights::frozen) {
    return Bytes(0);
  }
  const QuantizationRecipe& recipe = recipe_of(plan.quantization);
  if (recipe.attention_result_bits == 0) {
    return in_compute_type;
  }
  const double more = recipe.attention_result_bits / 8.0 + recipe.scale_bytes;
  return in_compute_type * ((more - recipe.element_bytes()) / plain_bytes(plan));
}

Bytes kept_activation_input(const Plan& plan, const zoo::ModelOperator& next_gemm,
                            Bytes in_compute_type) {
  const bool quantizes =
      is_quantized(plan, next_gemm) && (recipe_of(plan.quantization).keeps_activation_inputs ||
                                        recomputes_module(plan, "narrow_act"));
  return quantizes ? exchanged_bytes(plan, next_gemm, in_compute_type) : in_compute_type;
}

Bytes parameter_bytes(const Plan& plan, const zoo::ModelOperator& op, std::int64_t parameters) {
  if (is_packed(plan, op)) {
    const std::int64_t weights = std::min(parameters, weight_elements(op));
    return packed_bytes(plan, weights) + graph::bytes_of(plan.compute_type, parameters - weights);
  }
  const Bytes plain = graph::bytes_of(plan.compute_type, parameters);
  return arrives_quantized(plan) ? exchanged_bytes(plan, op, plain) : plain;
}

Bytes gemm_bytes(const graph::GemmShape& s, graph::DataType operands, graph::DataType result) {
  const Bytes read = Bytes(s.m) * s.k + Bytes(s.k) * s.n;
  const Bytes written = Bytes(s.m) * s.n;
  return graph::bytes_of(operands, (read * s.batch).value()) +
         graph::bytes_of(result, (written * s.batch).value());
}

QuantizeWork quantize_input(const Plan& plan, std::int64_t elements, int copies, bool after_norm) {
  const QuantizationRecipe& recipe = recipe_of(plan.quantization);
  if (after_norm && recipe.norm_quantizes) {  // copies instead of its result
    const double more = copies * recipe.element_bytes() - plain_bytes(plan);
    return work(elements, std::max(more, 0.0), 0);
  }
  const bool known = after_norm && recipe.norm_finds_it;
  return quantize(plan, elements, copies, recipe.reads_maximum && !known);
}

QuantizeWork quantize_gradient(const Plan& plan, std::int64_t elements, int copies) {
  return quantize(plan, elements, copies, recipe_of(plan.quantization).reads_maximum);
}

QuantizeWork quantize_weight(const Plan& plan, std::int64_t elements, StepPhase phase) {
  const QuantizationRecipe& recipe = recipe_of(plan.quantization);
  const bool forward = phase == StepPhase::forward;
  const bool anew = plan.zero == 3 && plan.reshard_after_forward;
  if (!forward && !anew) {
    return {};
  }
  if (arrives_quantized(plan)) {
    const bool needs_columns = !forward || !anew;
    return needs_columns ? work(elements, 2 * recipe.element_bytes(), 1) : QuantizeWork{};
  }
  return quantize(plan, elements, anew ? 1 : 2, recipe.reads_maximum);
}

}  // namespace orrery::plan
