// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/block_steps.h"

#include <string_view>

#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::parallel {
namespace {

/// Share of a fused accumulation's traffic that other tiles' compute does not hide (assumed: GEMM
/// tables have no shapes that accumulate in fp32).
constexpr double kExposedEpilogue = 0.5;

bool is_gemm(const zoo::ModelOperator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

/// One of the GEMMs of `op`; `suffix` (none: forward) and `shape` say which. Experts apart are a
/// launch each.
graph::Operator gemm_operator(const zoo::ModelOperator& op, std::string_view suffix,
                              const graph::GemmShape& shape, const plan::Plan& plan) {
  const bool apart = op.expert && plan.expert_gemms == plan::ExpertGemms::per_expert;
  graph::Operator result{.name = op.name + std::string(suffix),
                         .kind = op.kind,
                         .type = plan.compute_type,
                         .gemm = shape,
                         .flops = graph::flops_of(shape),
                         .kernels = apart ? static_cast<int>(shape.batch) : 1};
  if (plan::is_quantized(plan, op)) {
    const plan::QuantizationRecipe& recipe = plan::recipe_of(plan.quantization);
    result.type = recipe.type;
    result.block_scaled = recipe.block_scaled;
    result.splits_sums = recipe.splits_sums && !suffix.empty();
  }
  result.bytes = plan::gemm_bytes(shape, result.type, plan.compute_type);
  return result;
}

/// Extents that decide the kernel's speed: the length of a norm's rows does only when they are read
/// twice.
graph::GemmShape shape_of(const zoo::ModelOperator& op, const plan::Plan& plan) {
  return op.kind == graph::OperatorKind::norm && plan.persistent_norm ? graph::GemmShape{}
                                                                      : op.gemm;
}

graph::Operator forward_operator(const zoo::ModelOperator& op, const plan::Plan& plan) {
  if (is_gemm(op)) {
    return gemm_operator(op, "", op.gemm, plan);
  }
  return {.name = op.name,
          .kind = op.kind,
          .type = plan.compute_type,
          .gemm = shape_of(op, plan),
          .flops = op.forward_flops,
          .bytes = op.forward_bytes,
          .kernels = op.forward_kernels,
          .library = op.library};
}

graph::Operator backward_operator(const zoo::ModelOperator& op, const plan::Plan& plan) {
  return {.name = op.name + "_backward",
          .kind = op.kind,
          .type = plan.compute_type,
          .gemm = shape_of(op, plan),
          .flops = op.backward_flops,
          .bytes = op.backward_bytes,
          .kernels = op.backward_kernels,
          .backward = true,
          .library = op.library};
}

class BlockBuilder {
 public:
  explicit BlockBuilder(const plan::Plan& plan) : plan_(plan) {}

  /// after_norm: a norm makes the input.
  void forward(const zoo::ModelOperator& op, int source, bool after_norm) {
    unpack(op, plan::StepPhase::forward, source);
    if (plan::is_quantized(plan_, op)) {
      quantize_weights(op, plan::StepPhase::forward, source);
      const std::int64_t inputs = op.gemm.batch * op.gemm.m * op.gemm.k;
      if (!arrives_converted(op, zoo::TensorBoundary::combine)) {
        quantize(op, "_quantize_input",
                 plan::quantize_input(plan_, own_share(op, zoo::TensorBoundary::enter, inputs),
                                      copies_of(op), after_norm),
                 plan::StepPhase::forward, source);
      }
    }
    if (is_gemm(op) || op.forward_kernels > 0) {
      push(steps_.forward, forward_operator(op, plan_), plan::StepPhase::forward, Part::forward,
           source);
    }
    stash(op, "_stash", plan::StepPhase::forward, source);
  }

  void backward(const zoo::ModelOperator& op, int source) {
    stash(op, "_restore", plan::StepPhase::backward, source);
    unpack(op, plan::StepPhase::backward, source);
    if (plan::is_quantized(plan_, op)) {
      quantize_weights(op, plan::StepPhase::backward, source);
      const std::int64_t gradients = op.gemm.batch * op.gemm.m * op.gemm.n;
      if (!arrives_converted(op, zoo::TensorBoundary::dispatch)) {
        quantize(op, "_quantize_gradient",
                 plan::quantize_gradient(
                     plan_, own_share(op, zoo::TensorBoundary::leave, gradients), copies_of(op)),
                 plan::StepPhase::backward, source);
      }
    }
    if (is_gemm(op)) {
      gemm_backward(op, source);
    }
    if (op.backward_kernels > 0) {
      backward_step(backward_operator(op, plan_), Part::input_gradient, source);
    }
    accumulate(op, source);
  }

  BlockSteps finish() { return std::move(steps_); }

 private:
  /// One is for the weight gradient.
  static int copies_of(const zoo::ModelOperator& op) { return plan::is_trained(op) ? 2 : 1; }

  /// The GEMM of experts before it writes its result as the one at the other `boundary` reads it.
  bool arrives_converted(const zoo::ModelOperator& op, zoo::TensorBoundary boundary) const {
    return op.expert && op.boundary == boundary && plan_.expert_gemms == plan::ExpertGemms::fused;
  }

  /// Each expert's rows have a kernel of their own, but in graphs (Transformer Engine pull request
  /// 2360).
  int launches(const zoo::ModelOperator& op, int kernels) const {
    const bool apart = op.expert && plan_.expert_gemms == plan::ExpertGemms::per_expert &&
                       plan_.cuda_graphs != plan::CudaGraphs::full;
    return apart ? kernels * static_cast<int>(op.gemm.batch) : kernels;
  }

  /// With sequence parallelism a rank quantises its own tokens before they are gathered over tp.
  std::int64_t own_share(const zoo::ModelOperator& op, zoo::TensorBoundary gathered,
                         std::int64_t elements) const {
    return plan_.sequence_parallel && op.boundary == gathered ? elements / plan_.tp : elements;
  }

  /// Quantises weights: with ZeRO 3 whenever they are gathered, else once per step.
  void quantize_weights(const zoo::ModelOperator& op, plan::StepPhase phase, int source) {
    if (plan::is_packed(plan_, op)) {
      return;
    }
    const plan::QuantizeWork work = plan::quantize_weight(plan_, plan::weight_elements(op), phase);
    if (work.kernels > 0) {
      quantize(op, "_quantize_weight", work, phase, source);
      Step& step = (phase == plan::StepPhase::forward ? steps_.forward : steps_.backward).back();
      step.when = plan_.zero == 3 ? When::always : When::first_microbatch;
      step.reads = step.writes = Value::none;
    }
  }

  /// Makes a GEMM's operand of a frozen weight stored in a type of its own.
  void unpack(const zoo::ModelOperator& op, plan::StepPhase phase, int source) {
    if (!plan::is_packed(plan_, op)) {
      return;
    }
    const bool backward = phase == plan::StepPhase::backward;
    const Bytes bytes = plan::unpacking_bytes(plan_, plan::weight_elements(op), backward);
    if (bytes > Bytes(0)) {
      quantize(op, "_unpack_weight", {.bytes = bytes, .kernels = 1}, phase, source);
      Step& step = (backward ? steps_.backward : steps_.forward).back();
      step.reads = step.writes = Value::none;
    }
  }

  /// In graphs of whole steps the buffers of fused experts hold the most rows that may come: what
  /// backward needs of the rows that came is copied into pages, and back (paged stash of
  /// Megatron-LM, pull request 4247).
  void stash(const zoo::ModelOperator& op, const char* suffix, plan::StepPhase phase, int source) {
    if (!op.expert || plan_.expert_gemms != plan::ExpertGemms::fused ||
        plan_.cuda_graphs != plan::CudaGraphs::full) {
      return;
    }
    const std::int64_t inputs = op.gemm.batch * op.gemm.m * op.gemm.k;
    const Bytes kept = plan::is_quantized(plan_, op)
                           ? Bytes(inputs) * plan::recipe_of(plan_.quantization).element_bytes()
                           : op.saved;
    push(phase == plan::StepPhase::forward ? steps_.forward : steps_.backward,
         {.name = op.name + suffix,
          .kind = graph::OperatorKind::elementwise,
          .type = plan_.compute_type,
          .gemm = {},
          .bytes = 2 * kept},
         phase, Part::other, source);
  }

  void quantize(const zoo::ModelOperator& op, const char* suffix, const plan::QuantizeWork& work,
                plan::StepPhase phase, int source) {
    if (work.bytes > Bytes(0)) {
      push(phase == plan::StepPhase::forward ? steps_.forward : steps_.backward,
           {.name = op.name + suffix,
            .kind = graph::OperatorKind::elementwise,
            .type = plan_.compute_type,
            .gemm = {},
            .bytes = work.bytes,
            .kernels = launches(op, work.kernels)},
           phase, Part::other, source);
    }
  }

  void gemm_backward(const zoo::ModelOperator& op, int source) {
    const graph::GemmShape& s = op.gemm;
    const graph::GemmShape left{.batch = s.batch, .m = s.m, .n = s.k, .k = s.n};
    const graph::GemmShape right{.batch = s.batch, .m = s.k, .n = s.n, .k = s.m};
    const char* left_name = op.has_weight ? "_input_gradient" : "_left_gradient";
    const char* right_name = op.has_weight ? "_weight_gradient" : "_right_gradient";
    const auto gradient = [&](const char* suffix, const graph::GemmShape& shape) {
      graph::Operator product = gemm_operator(op, suffix, shape, plan_);
      product.backward = true;
      return product;
    };
    backward_step(gradient(left_name, left), Part::input_gradient, source);
    if (op.has_weight && !plan::is_trained(op)) {
      return;
    }
    backward_step(gradient(right_name, right), op.has_weight ? Part::weight_gradient : Part::other,
                  source);
    if (op.has_weight && plan_.fused_grad_accumulation) {  // reads and writes the buffer instead
      const Bytes gradient = graph::size_of(plan_.compute_type) * plan::weight_elements(op);
      const Bytes buffer = graph::size_of(plan_.grad_type) * plan::weight_elements(op);
      steps_.backward.back().node.operators[0].bytes += 2 * buffer - gradient;
    }
    if (op.has_weight) {  // nothing later reads it; the gradient that flows is the input's
      steps_.backward.back().reads = Value::none;
      steps_.backward.back().writes = Value::none;
    }
  }

  void accumulate(const zoo::ModelOperator& op, int source) {
    if (!plan::is_trained(op)) {
      return;
    }
    const std::int64_t fused = plan_.fused_grad_accumulation ? plan::weight_elements(op) : 0;
    // A tied head has no parameters of its own but does have a weight gradient.
    const std::int64_t apart = std::max(op.parameters, plan::weight_elements(op)) - fused;
    const Bytes buffer = graph::size_of(plan_.grad_type);
    accumulate_step(op.name + "_epilogue", buffer * fused * (2 * kExposedEpilogue), 0, source);
    accumulate_step(op.name + "_accumulate",
                    (graph::size_of(plan_.compute_type) + 2 * buffer) * apart, 1, source);
  }

  void accumulate_step(std::string name, Bytes bytes, int kernels, int source) {
    if (bytes <= Bytes(0)) {
      return;
    }
    backward_step({.name = std::move(name),
                   .kind = graph::OperatorKind::accumulate,
                   .type = plan_.grad_type,
                   .gemm = {},
                   .bytes = bytes,
                   .kernels = kernels},
                  Part::accumulate, source);
    steps_.backward.back().reads = Value::none;
    steps_.backward.back().writes = Value::none;
  }

  void backward_step(graph::Operator op, Part part, int source) {
    push(steps_.backward, std::move(op), plan::StepPhase::backward, part, source);
  }

  static void push(std::vector<Step>& steps, graph::Operator op, plan::StepPhase phase, Part part,
                   int source) {
    Step step = compute_step(std::move(op), phase);
    step.part = part;
    step.source = source;
    steps.push_back(std::move(step));
  }

  const plan::Plan& plan_;
  BlockSteps steps_;
};

}  // namespace

BlockSteps block_steps(const std::vector<zoo::ModelOperator>& operators, const plan::Plan& plan) {
  BlockBuilder builder(plan);
  const int count = static_cast<int>(operators.size());
  for (int i = 0; i < count; ++i) {
    const zoo::ModelOperator& op = operators[static_cast<std::size_t>(i)];
    const bool after_norm =
        op.boundary == zoo::TensorBoundary::enter && i > 0 &&
        operators[static_cast<std::size_t>(i - 1)].kind == graph::OperatorKind::norm;
    builder.forward(op, i, after_norm);
  }
  for (int i = count - 1; i >= 0; --i) {
    builder.backward(operators[static_cast<std::size_t>(i)], i);
  }
  return builder.finish();
}

}  // namespace orrery::parallel
