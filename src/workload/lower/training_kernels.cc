// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/training_kernels.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "workload/plan/key_exchange.h"
#include "workload/plan/lora.h"
#include "workload/plan/modules.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::lower {
namespace {

/// Share of a fused accumulation's traffic that other tiles' compute does not hide (assumed: GEMM
/// tables have no shapes that accumulate in fp32).
constexpr double kExposedEpilogue = 0.5;

bool is_gemm(const zoo::ModelOperator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

/// Launches of one of its GEMMs: experts apart have one each, and so have the matrices of an
/// adapter (lora.h).
int gemm_launches(const zoo::ModelOperator& op, const graph::GemmShape& shape,
                  const plan::Plan& plan) {
  if (op.expert && plan.expert_gemms == plan::ExpertGemms::per_expert) {
    return static_cast<int>(shape.batch);
  }
  return op.weights == zoo::Weights::adapter ? op.forward_kernels : 1;
}

/// Returns one of the GEMMs of `op`; `suffix` (none: forward) and `shape` say which.
graph::Operator gemm_operator(const zoo::ModelOperator& op, std::string_view suffix,
                              const graph::GemmShape& shape, const plan::Plan& plan) {
  graph::Operator result{.name = op.name + std::string(suffix),
                         .kind = op.kind,
                         .type = plan.compute_type,
                         .gemm = shape,
                         .flops = graph::flops_of(shape),
                         .kernels = gemm_launches(op, shape, plan)};
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
/// twice, which PyTorch's kernels never do.
graph::GemmShape shape_of(const zoo::ModelOperator& op, const plan::Plan& plan) {
  const bool reads_once = plan.persistent_norm || plan::is_pytorch(plan);
  return op.kind == graph::OperatorKind::norm && reads_once ? graph::GemmShape{} : op.gemm;
}

/// Fused attention in fp8 reads and writes a byte an element; its row sums count as if they did.
graph::DataType kernel_type(const zoo::ModelOperator& op, const plan::Plan& plan) {
  return op.library == graph::AttentionLibrary::cudnn_fp8 ? graph::DataType::fp8
                                                          : plan.compute_type;
}
Bytes moved(Bytes bytes, const zoo::ModelOperator& op, const plan::Plan& plan) {
  return bytes * (static_cast<double>(graph::bits_of(kernel_type(op, plan))) /
                  static_cast<double>(graph::bits_of(plan.compute_type)));
}

graph::Operator forward_operator(const zoo::ModelOperator& op, const plan::Plan& plan) {
  if (is_gemm(op)) {
    return gemm_operator(op, "", op.gemm, plan);
  }
  return {.name = op.name,
          .kind = op.kind,
          .type = kernel_type(op, plan),
          .gemm = shape_of(op, plan),
          .flops = op.forward_flops,
          .bytes = moved(op.forward_bytes, op, plan),
          .kernels = op.forward_kernels,
          .library = op.library};
}

graph::Operator backward_operator(const zoo::ModelOperator& op, const plan::Plan& plan) {
  return {.name = op.name + "_backward",
          .kind = op.kind,
          .type = kernel_type(op, plan),
          .gemm = shape_of(op, plan),
          .flops = op.backward_flops,
          .bytes = moved(op.backward_bytes, op, plan),
          .kernels = op.backward_kernels,
          .backward = true,
          .library = op.library};
}

/// The steps of one operator in one pass.
class OperatorSteps {
 public:
  OperatorSteps(const zoo::ModelOperator& own, const plan::Plan& plan, plan::StepPhase phase,
                std::vector<Step>& steps)
      : op_(own), plan_(plan), phase_(phase), steps_(steps) {}

  void forward(const OperatorLayouts& layouts, std::int64_t shards) {
    unpack();
    cast_weight();
    if (plan::is_quantized(plan_, op_)) {
      quantize_weights();
      const std::int64_t inputs = op_.gemm.batch * op_.gemm.m * op_.gemm.k;
      if (!layouts.input_converted) {
        quantize("_quantize_input", plan::quantize_input(plan_, inputs / shards, gradient_copies(),
                                                         layouts.after_norm));
      }
    }
    convert_attention();
    if (is_gemm(op_) || op_.forward_kernels > 0) {
      graph::Operator kernel = forward_operator(op_, plan_);
      kernel.bytes -= kernel.bytes * layouts.narrower_result;
      push(std::move(kernel), Part::forward);
    }
    merge_keys(false);
    stash("_stash");
  }

  void backward(const OperatorLayouts& layouts, std::int64_t shards) {
    stash("_restore");
    unpack();
    if (plan::is_quantized(plan_, op_)) {
      quantize_weights();
      const std::int64_t gradients = op_.gemm.batch * op_.gemm.m * op_.gemm.n;
      if (!layouts.gradient_converted) {
        quantize("_quantize_gradient",
                 plan::quantize_gradient(plan_, gradients / shards, gradient_copies()));
      }
    }
    if (is_gemm(op_)) {
      gemm_backward();
    }
    convert_attention();
    if (op_.backward_kernels > 0) {
      graph::Operator kernel = backward_operator(op_, plan_);
      kernel.bytes -= kernel.bytes * layouts.narrower_gradient;
      push(std::move(kernel), Part::input_gradient);
    }
    merge_keys(true);
    accumulate();
  }

 private:
  /// One is for the weight gradient.
  int gradient_copies() const { return plan::is_trained(op_) ? 2 : 1; }

  /// Each expert's rows have a kernel of their own, but in graphs (Transformer Engine pull request
  /// 2360).
  int launches(int kernels) const {
    const bool apart = op_.expert && plan_.expert_gemms == plan::ExpertGemms::per_expert &&
                       plan_.cuda_graphs != plan::CudaGraphs::full;
    return apart ? kernels * static_cast<int>(op_.gemm.batch) : kernels;
  }

  /// Frozen weights that are stored quantised have both copies from the start
  /// (Float8Tensor's cache of the transpose; `disable_parameter_transpose_cache` is off).
  bool keeps_quantized() const {
    return op_.weights == zoo::Weights::frozen && plan_.quantized_params && plan_.zero < 3 &&
           plan::recipe_of(plan_.quantization).transposable;
  }

  /// Quantises weights: with ZeRO 3 whenever they are gathered, else once per step.
  void quantize_weights() {
    if (plan::is_packed(plan_, op_) || keeps_quantized()) {
      return;
    }
    const plan::QuantizeWork work =
        plan::quantize_weight(plan_, plan::weight_elements(op_), phase_);
    if (work.kernels > 0) {
      quantize("_quantize_weight", work);
      steps_.back().when = plan_.zero == 3 ? When::always : When::first_microbatch;
      steps_.back().reads = steps_.back().writes = Value::none;
    }
  }

  /// Makes a GEMM's operand of a frozen weight stored in a type of its own.
  void unpack() {
    if (!plan::is_packed(plan_, op_)) {
      return;
    }
    const bool backward = phase_ == plan::StepPhase::backward;
    const Bytes bytes = plan::unpacking_bytes(plan_, plan::weight_elements(op_), backward);
    if (bytes > Bytes(0)) {
      quantize("_unpack_weight", {.bytes = bytes, .kernels = 1});
      steps_.back().reads = steps_.back().writes = Value::none;
    }
  }

  /// Autocast copies weights into the compute type in every forward pass.
  void cast_weight() {
    if (plan_.autocast && op_.has_weight && plan::is_trained(op_)) {
      const Bytes both = graph::size_of(plan_.master_type) + graph::size_of(plan_.compute_type);
      push(streamed("_cast_weight", both * plan::weight_elements(op_), 1), Part::other);
      steps_.back().reads = steps_.back().writes = Value::none;
    }
  }

  /// Adds the kernels of the paged stash. In graphs of whole steps the buffers of fused experts
  /// hold the most rows that may come: what backward needs of the rows that came is copied into
  /// pages, and back (paged stash of Megatron-LM, pull request 4247).
  void stash(const char* suffix) {
    if (!op_.expert || plan_.expert_gemms != plan::ExpertGemms::fused ||
        plan_.cuda_graphs != plan::CudaGraphs::full) {
      return;
    }
    const std::int64_t inputs = op_.gemm.batch * op_.gemm.m * op_.gemm.k;
    const Bytes kept = plan::is_quantized(plan_, op_)
                           ? Bytes(inputs) * plan::recipe_of(plan_.quantization).element_bytes()
                           : op_.saved;
    push(streamed(suffix, 2 * kept, 1), Part::other);
  }

  void quantize(const char* suffix, const plan::QuantizeWork& work) {
    if (work.bytes > Bytes(0)) {
      push(streamed(suffix, work.bytes, launches(work.kernels)), Part::other);
    }
  }

  graph::Operator streamed(const char* suffix, Bytes bytes, int kernels) const {
    return {.name = op_.name + suffix,
            .kind = graph::OperatorKind::elementwise,
            .type = plan_.compute_type,
            .gemm = {},
            .bytes = bytes,
            .kernels = kernels};
  }

  /// Attention in fp8 is between tensors of the compute type: a kernel converts what it takes and
  /// another what it makes (fp8_dot_product_attention of Transformer Engine).
  void convert_attention() {
    if (kernel_type(op_, plan_) != plan_.compute_type) {
      const Bytes whole = op_.forward_bytes;
      push(streamed("_convert", whole + moved(whole, op_, plan_), 2), Part::other);
    }
  }

  /// Other kernels join keys and values for an exchange and merge what runs of attention give.
  void merge_keys(bool backward) {
    const plan::KeyMerge merge = plan::key_merge(plan_, backward);
    if (op_.key_value > Bytes(0) && merge.kernels > 0) {
      push(
          streamed("_merge", op_.query * merge.queries + op_.key_value * merge.keys, merge.kernels),
          Part::other);
    }
  }

  void gemm_backward() {
    const graph::GemmShape& s = op_.gemm;
    const graph::GemmShape left{.batch = s.batch, .m = s.m, .n = s.k, .k = s.n};
    const graph::GemmShape right{.batch = s.batch, .m = s.k, .n = s.n, .k = s.m};
    const bool weight = op_.has_weight;
    const auto gradient = [&](const char* suffix, const graph::GemmShape& shape) {
      graph::Operator product = gemm_operator(op_, suffix, shape, plan_);
      product.backward = true;
      return product;
    };
    push(gradient(weight ? "_input_gradient" : "_left_gradient", left), Part::input_gradient);
    if (weight && !plan::is_trained(op_)) {
      return;
    }
    push(gradient(weight ? "_weight_gradient" : "_right_gradient", right),
         weight ? Part::weight_gradient : Part::other);
    if (!weight) {
      return;
    }
    if (plan_.fused_grad_accumulation) {  // reads and writes the buffer instead
      const Bytes written = graph::size_of(plan_.compute_type) * plan::weight_elements(op_);
      const Bytes buffer = graph::size_of(plan_.grad_type) * plan::weight_elements(op_);
      steps_.back().node.operators[0].bytes += 2 * buffer - written;
    }
    // Nothing later reads it; the gradient that flows is the input's.
    steps_.back().reads = steps_.back().writes = Value::none;
  }

  void accumulate() {
    if (!plan::is_trained(op_)) {
      return;
    }
    const std::int64_t fused = plan_.fused_grad_accumulation ? plan::weight_elements(op_) : 0;
    // A tied head has no parameters of its own but does have a weight gradient.
    const std::int64_t apart = std::max(op_.parameters, plan::weight_elements(op_)) - fused;
    const Bytes buffer = graph::size_of(plan_.grad_type);
    const Bytes made = graph::size_of(plan_.compute_type);
    if (plan::gradients_come_and_go(plan_)) {
      hand_over(apart, buffer);
      return;
    }
    accumulate("_epilogue", buffer * fused * (2 * kExposedEpilogue), 0);
    // FSDP2 copies into the reduction's buffer what others add to one.
    const int passes = plan::copies_shards(plan_) && plan_.shard_grads != 1 ? 1 : 2;
    accumulate("_accumulate", (made + passes * buffer) * apart, 1);
  }

  /// A gradient that comes anew in each step takes no sum (AccumulateGrad of PyTorch), but a cast
  /// where the product gives another type, and for a table that two products share.
  void hand_over(std::int64_t parameters, Bytes wide) {
    const Bytes made = graph::size_of(plan_.compute_type);
    const bool casts = op_.has_weight && made != wide;
    const bool shares = op_.has_weight && op_.parameters == 0;
    const Bytes moved = (casts ? made + wide : Bytes(0)) + (shares ? 3 * wide : Bytes(0));
    if (moved > Bytes(0)) {
      push(streamed("_gradient", moved * parameters, (casts ? 1 : 0) + (shares ? 1 : 0)),
           Part::accumulate);
      steps_.back().reads = steps_.back().writes = Value::none;
    }
  }

  void accumulate(const char* suffix, Bytes bytes, int kernels) {
    if (bytes <= Bytes(0)) {
      return;
    }
    push({.name = op_.name + suffix,
          .kind = graph::OperatorKind::accumulate,
          .type = plan_.grad_type,
          .gemm = {},
          .bytes = bytes,
          .kernels = kernels},
         Part::accumulate);
    steps_.back().reads = steps_.back().writes = Value::none;
  }

  void push(graph::Operator op, Part part) {
    steps_.push_back(compute_step(std::move(op), phase_));
    steps_.back().part = part;
  }

  const zoo::ModelOperator& op_;
  const plan::Plan& plan_;
  plan::StepPhase phase_;
  std::vector<Step>& steps_;
};

}  // namespace

void TrainingKernels::append(const zoo::ModelOperator& own, const OperatorLayouts& layouts,
                             plan::StepPhase phase, std::int64_t shards,
                             std::vector<Step>& steps) const {
  OperatorSteps of_operator(own, plan_, phase, steps);
  if (phase == plan::StepPhase::forward) {
    of_operator.forward(layouts, shards);
  } else {
    of_operator.backward(layouts, shards);
  }
}

bool TrainingKernels::reads_input(const zoo::ModelOperator& own) const {
  return plan::is_trained(own) || !own.has_weight;
}

Bytes TrainingKernels::on_wire(const zoo::ModelOperator& own, Bytes operand) const {
  return plan::exchanged_bytes(plan_, own, operand);
}

}  // namespace orrery::lower
