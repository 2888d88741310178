// SPDX-License-Identifier: Apache-2.0
#include "serving/step/pass_prices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "machine/compute/spatial.h"
#include "machine/compute/streamed_experts.h"
#include "serving/step/pass_operators.h"
#include "workload/plan/shard.h"

namespace orrery::step {

PassPrices::PassPrices(const zoo::Model& model, machine::Machine machine,
                       const StepOptions& options, std::shared_ptr<const MeasuredKernels> measured)
    : model_(model),
      machine_(std::move(machine)),
      options_(options),
      kinds_(zoo::layers_by_kind(model)),
      measured_(std::move(measured)) {
  model_.mtp = 0;
  if (embeds(model_)) {  // its residual sums are kernels of their own, which drop nothing
    model_.dropout = model_.attention_dropout = model_.embedding_dropout = 0;
  }
  model_.experts += options_.redundant;
  if (model_.experts > 0) {
    const auto experts = static_cast<double>(model_.experts);
    const auto chosen = static_cast<double>(model_.top_k);
    routing_ = options_.spread > 0 ? plan::Routing::of_spread(experts, chosen, options_.spread)
                                   : plan::Routing(experts, chosen, options_.bias);
  }
  if (machine_.device.power_model.known()) {
    machine_.device.clock = machine_.device.attention_clock = 1;  // every step finds its own
  }
  const auto group = [&](std::int64_t stride, std::int64_t count) -> RankGroup {
    return {stride, count, collective::extents_of(stride, count, machine_)};
  };
  const Degrees& degrees = options_.degrees;
  tensor_group_ = group(1, degrees.tp);
  data_group_ = group(degrees.tp, degrees.dp);
  expert_group_ = group(1, degrees.tp * degrees.dp);
  context_group_ = group(degrees.tp, degrees.cp);
  stage_group_ = group(degrees.tp, degrees.pp);
  if (machine_.wires.graph || options_.network) {
    on_links_.emplace(machine_, options_.network.value_or(simulate::NetworkModel::flow));
  }
}

bool PassPrices::measures_attention(std::size_t kind) const {
  const zoo::LayerKind layer = kind_of(kind);
  return measured_ && measured_->has_attention() && options_.degrees.cp == 1 &&
         layer.mixer == zoo::MixerKind::attention && layer.window == 0 && layer.chunk == 0;
}

std::int64_t PassPrices::kv_heads(const zoo::LayerKind& kind) const {
  return std::max<std::int64_t>(1, zoo::kv_heads_of(model_, kind) / options_.degrees.tp);
}

graph::GemmShape padded_expert(const zoo::Model& model, const zoo::ModelOperator& op,
                               const Precision& precision) {
  graph::GemmShape gemm = op.gemm;
  if (op.expert && precision.narrow == Narrow::experts && graph::bits_of(precision.weights) == 4) {
    const auto up = [](std::int64_t width, std::int64_t multiple) {
      return (width + multiple - 1) / multiple * multiple;
    };
    constexpr std::int64_t kStream = 256;
    constexpr std::int64_t kInner = 128;
    const bool first = op.role == graph::OperatorRole::expert_up;
    const std::int64_t halves = first && zoo::is_gated(model.mlp) ? 2 : 1;
    gemm.n = first ? halves * up(gemm.n / halves, kInner) : up(gemm.n, kStream);
    gemm.k = up(gemm.k, first ? kStream : kInner);
  }
  return gemm;
}

namespace {

/// A kernel that casts `elements` operands of a product to its type.
graph::Operator cast_kernel(std::int64_t elements, graph::DataType type) {
  graph::Operator run{.name = "cast", .kind = graph::OperatorKind::elementwise, .gemm = {}};
  run.type = type;
  run.bytes = graph::bytes_of(graph::DataType::bf16, elements) + graph::bytes_of(type, elements);
  return run;
}

/// A unit streams so many bytes a second of experts' weights in Triton's kernel as vLLM and SGLang
/// configure it where no file is tuned for so many experts on a device: 64 or 32 columns by 32 or
/// 64 rows of K a tile. Fitted to Qwen3-235B-A22B on B200 and Qwen3-30B-A3B on H100 with divided
/// experts, the declared half of serving_ml_energy (15 to 18 GB/s).
constexpr Bandwidth kUntunedRate(16.5e9);

}  // namespace

plan::Plan PassPrices::plan_for(std::int64_t tokens) const {
  constexpr std::int64_t kVocabularyMultiple = 64;  // vLLM's DEFAULT_VOCAB_PADDING_SIZE
  plan::Plan plan;
  plan.tp = options_.degrees.tp;
  plan.ep = options_.degrees.ep;
  plan.etp =
      model_.experts > 0 ? options_.degrees.tp * options_.degrees.dp / options_.degrees.ep : 0;
  plan.sequence = tokens;
  plan.attention = zoo::AttentionKernel::flash;
  plan.vocab_multiple = kVocabularyMultiple;
  plan.moe_imbalance = options_.imbalance;
  plan.moe_spread = routing_ && options_.imbalance == 1 ? routing_->spread() : 0;
  return plan;
}

void PassPrices::add_operators(Part& part, const std::vector<zoo::ModelOperator>& operators,
                               const plan::Plan& plan) const {
  for (const zoo::ModelOperator& op : operators) {
    if (!is_left_out(model_, op)) {
      for (const graph::Operator& run : kernels_of(op, plan)) {
        part.add(kernel(run), run.kernels);
      }
    }
  }
}

double PassPrices::tokens_of_all(const plan::Plan& plan) const {
  return static_cast<double>(plan.sequence * options_.degrees.dp);
}

void PassPrices::reach_experts(const plan::Plan& plan, graph::GemmShape& gemm) const {
  const double tokens = tokens_of_all(plan);
  const double reached = routing_->reached(tokens);
  const double rows =
      tokens * static_cast<double>(model_.top_k) * plan::expert_load(plan, model_.experts);
  gemm.batch =
      std::clamp<std::int64_t>(std::llround(reached / static_cast<double>(plan.ep)), 1, gemm.batch);
  gemm.m = static_cast<std::int64_t>(std::ceil(rows / std::max(reached, 1.0)));
}

Time PassPrices::untuned_experts(const graph::Operator& product, const plan::Plan& plan) const {
  if (graph::bits_of(product.type) < 16 || (product.stored_bits != 0 && product.stored_bits < 16)) {
    return Time(0);
  }
  const double reached = routing_->reached_on_busiest(tokens_of_all(plan), plan.ep);
  const Bytes expert = graph::bytes_of(product.type, product.gemm.n * product.gemm.k);
  return expert * reached / (kUntunedRate * static_cast<double>(machine_.device.units));
}

std::vector<graph::Operator> PassPrices::gemm_kernels(const zoo::ModelOperator& op,
                                                      const plan::Plan& plan) const {
  const Precision& precision = options_.precision;
  std::vector<graph::Operator> kernels;
  graph::Operator run{
      .name = op.name, .kind = op.kind, .gemm = padded_expert(model_, op, precision)};
  const bool narrow = is_narrow(op, precision.narrow);
  if (op.expert) {
    reach_experts(plan, run.gemm);
  }
  if (narrow) {
    run.type = precision.activations;
    run.stored_bits = graph::bits_of(precision.weights_of(op.expert));
    run.block_scaled = precision.block_scaled;
    const int bits = static_cast<int>(graph::bits_of(run.type));
    const bool fused = options_.fused_casts && bits == 8 && !run.block_scaled;
    if (bits < 16 && !fused) {
      kernels.push_back(cast_kernel(op.gemm.m * op.gemm.k, run.type));
    }
  }
  run.flops = flops_of(run.gemm);
  const bool alone = measured_ && !op.expert && run.gemm.batch == 1 && !run.block_scaled &&
                     (!narrow || graph::bits_of(run.type) == run.stored_bits);
  if (alone) {
    run.duration =
        measured_->product(run.type, run.gemm.m, run.gemm.n, run.gemm.k).value_or(Time(0));
  }
  const bool streams = options_.streamed_experts == StreamedExperts::all ||
                       (options_.streamed_experts == StreamedExperts::fp4 && run.stored_bits == 4);
  const Time streamed = op.expert && streams
                            ? compute::streamed_experts(run, precision.scale_bits_of(true),
                                                        plan.sequence, machine_.device)
                            : Time(0);
  if (streamed > Time(0) && streamed < kernel(run).time) {
    run.duration = streamed;
  }
  Time later(0);
  if (narrow && !op.expert && graph::bits_of(run.type) == 4 && options_.fp4_lag > 0) {
    constexpr double kFewRows = 128;
    later = kernel(run).time *
            (options_.fp4_lag * std::min(1.0, kFewRows / static_cast<double>(run.gemm.m)));
  }
  if (op.expert) {
    const bool vllm = options_.streamed_experts == StreamedExperts::fp4;
    const Time grouped = kernel(run).time;
    later = compute::mixed_experts_later(run, grouped, vllm, machine_.device);
    if (vllm && plan.ep > 1) {
      later += std::max(Time(0), untuned_experts(run, plan) - grouped);
    }
  }
  if (later > Time(0)) {
    kernels.push_back(
        {.name = "later", .kind = graph::OperatorKind::opaque, .gemm = {}, .duration = later});
    kernels.back().kernels = 0;
  }
  kernels.push_back(std::move(run));
  return kernels;
}

std::vector<graph::Operator> PassPrices::kernels_of(zoo::ModelOperator op,
                                                    const plan::Plan& plan) const {
  if (const auto known = measured_ ? measured_->layer(op.name, plan.sequence) : std::nullopt) {
    return {{.name = op.name, .kind = graph::OperatorKind::opaque, .gemm = {}, .duration = *known}};
  }
  op = plan::shard(std::move(op), plan);
  if (is_product(op)) {
    return gemm_kernels(op, plan);
  }
  graph::Operator run = streamed(model_, op);
  if (op.kind == graph::OperatorKind::permute) {
    run.bytes = moved_rows(plan) + (op.role == graph::OperatorRole::routing
                                        ? Bytes(8) * plan.sequence * model_.experts
                                        : Bytes(0));
  }
  return {std::move(run)};
}

Bytes PassPrices::moved_rows(const plan::Plan& plan) const {
  const std::int64_t tokens = plan.sequence * options_.degrees.dp;
  const std::int64_t width = model_.expert.latent > 0 ? model_.expert.latent : model_.hidden;
  const double rows = static_cast<double>(tokens * model_.top_k) *
                      plan::expert_load(plan, model_.experts) / static_cast<double>(plan.ep);
  return graph::bytes_of(wide_type(), (tokens + std::llround(rows)) * width);
}

graph::Operator PassPrices::cache_write_kernel(const zoo::LayerKind& kind,
                                               std::int64_t tokens) const {
  const std::int64_t head_dim = zoo::head_dim_of(model_, kind);
  std::int64_t width = kv_heads(kind) * 2 * head_dim;
  if (kind.mixer == zoo::MixerKind::compressed_attention) {
    const std::int64_t compressed = head_dim + (kind.chosen > 0 ? model_.compressed.index_dim : 0);
    width = head_dim + (kind.compression > 0 ? compressed / kind.compression : 0);
  } else if (model_.latent.key_value_rank > 0) {
    width = model_.latent.key_value_rank + model_.latent.rotary;
  }
  graph::Operator write{
      .name = "cache_write", .kind = graph::OperatorKind::cache_write, .gemm = {}};
  write.bytes = graph::bytes_of(graph::DataType::bf16, tokens * width) +
                graph::bytes_of(options_.precision.kv, tokens * width);
  return write;
}

graph::DataType PassPrices::wide_type() const {
  for (const graph::DataType type : {graph::DataType::bf16, graph::DataType::fp16}) {
    if (machine_.device.peak[static_cast<std::size_t>(type)] > FlopRate(0)) {
      return type;
    }
  }
  return graph::DataType::fp32;
}

Timed PassPrices::kernel(graph::Operator op) const {
  if (op.duration > Time(0)) {
    return Timed(op.duration);  // measured
  }
  op.type = op.type == graph::DataType::bf16 ? wide_type() : op.type;
  return timed(op);
}

Timed PassPrices::elementwise(Bytes bytes, int kernels) const {
  graph::Operator run{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
  run.bytes = bytes;
  run.kernels = kernels;
  return kernel(std::move(run));
}

Timed PassPrices::timed(const graph::Operator& op) const {
  if (compute::fuses(machine_.device)) {
    return Timed(compute::fused_time({&op, 1}, machine_.device));
  }
  const compute::Load load = compute::load_of(op, machine_.device);
  return {from_seconds(load.seconds), load};
}

}  // namespace orrery::step
