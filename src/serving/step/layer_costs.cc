// SPDX-License-Identifier: Apache-2.0
/// Layer costs depend on the numbers of tokens and samples alone.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "collective/phase_messages.h"
#include "collective/token_exchange.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/spatial.h"
#include "serving/step/pass_operators.h"
#include "serving/step/step_cost.h"
#include "workload/plan/shard.h"

namespace orrery::step {
namespace {

constexpr std::int64_t kVocabularyMultiple = 64;  // vLLM's DEFAULT_VOCAB_PADDING_SIZE

/// Says whether a matrix is in the narrow formats.
bool is_narrow(const zoo::ModelOperator& op, Narrow narrow) {
  if (!op.has_weight || op.name.starts_with("logits") || op.name.starts_with("router")) {
    return false;  // as quantised checkpoints have them
  }
  const bool mlp = op.name.ends_with("fc1_gemm") || op.name.ends_with("fc2_gemm");
  return narrow == Narrow::all || op.expert || (narrow == Narrow::mlp && mlp);
}

/// Returns the operator of what is no product.
graph::Operator streamed(const zoo::Model& model, const zoo::ModelOperator& op) {
  graph::Operator run{.name = {}, .kind = op.kind, .gemm = {}};
  run.bytes = op.forward_bytes;
  run.kernels = op.forward_kernels;
  if (op.kind == graph::OperatorKind::norm && model.norm_place == zoo::NormPlace::before &&
      (op.name == "input_norm" || op.name == "mlp_norm")) {
    run.bytes = 2 * run.bytes;  // with the residual stream: read, added to, written
  } else if (op.kind == graph::OperatorKind::permute) {
    run.kernels = 1;
  }
  return run;
}

}  // namespace

plan::Plan StepCost::plan_for(std::int64_t tokens) const {
  plan::Plan plan;
  plan.tp = options_.degrees.tp;
  plan.ep = options_.degrees.ep;
  plan.etp = options_.degrees.ep > 1 ? 1 : 0;
  plan.sequence = tokens;
  plan.attention = zoo::AttentionKernel::flash;
  plan.vocab_multiple = kVocabularyMultiple;
  plan.moe_imbalance = options_.imbalance;
  plan.moe_spread = options_.spread;
  return plan;
}

void StepCost::add_gemm(Part& part, const zoo::ModelOperator& op, const plan::Plan& plan) const {
  const Precision& precision = options_.precision;
  graph::Operator run{.name = {}, .kind = op.kind, .gemm = op.gemm};
  const bool narrow = is_narrow(op, precision.narrow);
  if (op.expert) {
    // Of all ranks' experts those that the tokens reach, each with an equal part of their rows.
    const auto experts = static_cast<double>(model_.experts);
    const double miss = 1 - static_cast<double>(model_.top_k) / experts;
    const auto tokens = static_cast<double>(plan.sequence * options_.degrees.dp);
    const double reached = experts * (1 - std::pow(miss, tokens));
    const double rows =
        tokens * static_cast<double>(model_.top_k) * plan::expert_load(plan, model_.experts);
    run.gemm.batch = std::clamp<std::int64_t>(std::llround(reached / static_cast<double>(plan.ep)),
                                              1, op.gemm.batch);
    run.gemm.m = static_cast<std::int64_t>(std::ceil(rows / std::max(reached, 1.0)));
  }
  if (narrow) {
    run.type = precision.activations;
    run.stored_bits = graph::bits_of(precision.weights);
    run.block_scaled = precision.block_scaled;
    if (graph::bits_of(run.type) < 16) {  // operands are cast in a kernel of their own
      const Bytes cast = graph::bytes_of(graph::DataType::bf16, op.gemm.m * op.gemm.k) +
                         graph::bytes_of(run.type, op.gemm.m * op.gemm.k);
      graph::Operator casting{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
      casting.bytes = cast;
      part.add(kernel(casting), 1);
    }
  }
  run.flops = flops_of(run.gemm);
  const bool alone = measured_ && !op.expert && run.gemm.batch == 1 && !run.block_scaled &&
                     (!narrow || graph::bits_of(run.type) == run.stored_bits);
  const auto known =
      alone ? measured_->product(run.type, run.gemm.m, run.gemm.n, run.gemm.k) : std::nullopt;
  part.add(known ? *known : kernel(run), 1);
}

void StepCost::add_operator(Part& part, zoo::ModelOperator op, const plan::Plan& plan) const {
  if (const auto known = measured_ ? measured_->layer(op.name, plan.sequence) : std::nullopt) {
    part.add(*known, 1);
    return;
  }
  op = plan::shard(std::move(op), plan);
  if (is_product(op)) {
    add_gemm(part, op, plan);
    return;
  }
  const graph::Operator run = streamed(model_, op);
  part.add(kernel(run), run.kernels);
}

void StepCost::add_all_reduce(Part& part, std::int64_t tokens) const {
  if (options_.degrees.tp > 1) {
    const Bytes size = graph::bytes_of(wide_type(), tokens * model_.hidden);
    part.add(options_.gateway == Gateway::none ? moved(graph::CollectiveKind::all_reduce, size,
                                                       tensor_group_, options_.all_reduce)
                                               : reduced_at_home(size),
             1);
  }
}

Time StepCost::reduced_at_home(Bytes size) const {
  const topology::NetworkDimension& way = machine_.network.front();
  const collective::Gateways home{
      .devices = options_.degrees.tp, .bandwidth = way.bandwidth, .path = way.latency};
  const auto named = value_of<collective::GatewayAlgorithm>(name_of(options_.gateway));
  return collective::gateway_all_reduce(named ? *named : collective::fastest_all_reduce(size, home),
                                        size, home);
}

void StepCost::add_exchange(Part& part, std::int64_t tokens) const {
  if (options_.degrees.dp == 1) {
    return;
  }
  if (options_.dispatch == plan::MoeDispatch::all_gather) {
    const Bytes all = Bytes(2) * tokens * options_.degrees.dp * model_.hidden;
    for (const auto kind :
         {graph::CollectiveKind::all_gather, graph::CollectiveKind::reduce_scatter}) {
      part.add(moved(kind, all, data_group_), 1);
    }
    return;
  }
  const std::int64_t tp = options_.degrees.tp;
  const std::int64_t rows = (tokens + tp - 1) / tp * model_.top_k;
  for (const graph::DataType type : {options_.precision.activations, graph::DataType::bf16}) {
    const Bytes size = graph::bytes_of(type, rows * model_.hidden);
    part.add(options_.dispatch == plan::MoeDispatch::hierarchical
                 ? exchanged(size)
                 : moved(graph::CollectiveKind::all_to_all, size, expert_group_),
             1);
  }
}

Time StepCost::moved(graph::CollectiveKind kind, Bytes size, const RankGroup& group,
                     collective::CollectiveAlgorithm algorithm) const {
  return on_links_ ? on_links_->time(kind, size, group, algorithm)
                   : collective::collective_time(kind, size, group.extents, algorithm, machine_);
}

Time StepCost::exchanged(Bytes size) const {
  constexpr auto kAutomatic = collective::CollectiveAlgorithm::automatic;
  if (on_links_) {
    return on_links_->time(graph::CollectiveKind::all_to_all, size, expert_group_, kAutomatic,
                           zoo::token_route(model_));
  }
  return collective::total_time(
      collective::plan_token_exchange(collective::plan_collective, size, zoo::token_route(model_),
                                      expert_group_.extents, kAutomatic, machine_));
}

Time StepCost::hop(std::int64_t tokens) const {
  return moved(graph::CollectiveKind::send_recv, Bytes(2) * tokens * model_.hidden, stage_group_);
}

Time StepCost::cache_write(std::int64_t tokens) const {
  const std::int64_t width =
      model_.latent.key_value_rank > 0
          ? model_.latent.key_value_rank + model_.latent.rotary
          : std::max<std::int64_t>(1, model_.kv_heads / options_.degrees.tp) * 2 * model_.head_dim;
  graph::Operator write{.name = {}, .kind = graph::OperatorKind::cache_write, .gemm = {}};
  write.bytes = graph::bytes_of(graph::DataType::bf16, tokens * width) +
                graph::bytes_of(options_.precision.kv, tokens * width);
  return kernel(write);
}

Bytes StepCost::kept_on_chip(std::int64_t tokens) const {
  const plan::Plan plan = plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  Bytes most{0};
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    for (zoo::ModelOperator& op : zoo::layer_operators(model_, shapes, static_cast<int>(kind))) {
      if (!is_left_out(model_, op)) {
        const zoo::ModelOperator own = plan::shard(std::move(op), plan);
        const graph::Operator run =
            is_product(own) ? graph::Operator{.name = {}, .kind = own.kind, .gemm = own.gemm}
                            : streamed(model_, own);
        most = std::max(most, compute::kept_bytes(run));
      }
    }
  }
  return most;
}

StepCost::Rows StepCost::layers(std::int64_t tokens) const {
  const plan::Plan plan = plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  Rows rows;
  Part& total = rows.all;
  for (const zoo::ModelOperator& op : zoo::embedding_operators(model_, shapes)) {
    if (!is_left_out(model_, op)) {
      add_operator(total, op, plan);
    }
  }
  add_all_reduce(total, tokens);
  rows.outside = total.time;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    Part first;
    Part second;
    Part sums;
    bool ended = false;
    bool routes = false;
    for (const zoo::ModelOperator& op :
         zoo::layer_operators(model_, shapes, static_cast<int>(kind))) {
      routes = routes || op.expert;
      const bool expanded_apart = op.name == "kv_b_gemm";  // attend_latent()
      if (!is_left_out(model_, op) && !expanded_apart) {
        add_operator(ended ? second : first, op, plan);
      }
      if (op.kind == graph::OperatorKind::attention && !measures_attention(kind)) {
        first.add(cache_write(tokens), 1);
      }
      if (ends_branch(op, routes)) {
        add_all_reduce(sums, tokens);
        ended = true;
      }
    }
    if (routes) {
      if (exchanges_shards()) {
        sums.add(stream_prices(tokens).all_gather, tensor_group_.count > 1 ? 1 : 0);
      } else {
        add_all_reduce(sums, tokens);
      }
      add_exchange(second, tokens);
    }
    for (const Part* part : {&first, &second, &sums}) {
      total.add(part->time * kinds_[kind], part->kernels * kinds_[kind]);
    }
    rows.second += second.time * kinds_[kind];
    rows.reducing += sums.time * kinds_[kind];
  }
  const std::int64_t hops = options_.degrees.pp - 1;
  if (hops > 0) {
    total.add(hops * hop(tokens), hops);
  }
  return rows;
}

StepCost::Part StepCost::head(std::int64_t samples) const {
  Part total;
  if (samples == 0) {
    return total;
  }
  const plan::Plan plan = plan_for(samples);
  for (const zoo::ModelOperator& op :
       zoo::head_operators(model_, plan::shape_options(model_, plan))) {
    if (!is_left_out(model_, op)) {
      add_operator(total, op, plan);
    }
  }
  const std::int64_t logits = samples * model_.vocab;
  if (options_.degrees.tp > 1) {
    total.add(moved(graph::CollectiveKind::all_gather, Bytes(2) * logits, tensor_group_), 1);
  }
  if (const auto known = measured_ ? measured_->layer("sampling", samples) : std::nullopt) {
    total.add(*known, 1);
    return total;
  }
  // Sampling: to fp32 (2 read, 4 written), then the greatest (4 read).
  graph::Operator sampling{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
  sampling.bytes = Bytes(10) * logits;
  sampling.kernels = 2;
  total.add(kernel(sampling), 2);
  return total;
}

template <class Visit>
void StepCost::visit_adapted(std::int64_t tokens, Visit visit) const {
  const plan::Plan plan = plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    for (const zoo::ModelOperator& op :
         zoo::layer_operators(model_, shapes, static_cast<int>(kind))) {
      if (is_product(op) && !op.expert && is_narrow(op, Narrow::all)) {
        const zoo::ModelOperator share = plan::shard(op, plan);
        const bool pair = op.name.ends_with("fc1_gemm") && zoo::is_gated(model_.mlp);
        const std::int64_t fused = op.name == "qkv_gemm" ? 3 : pair ? 2 : 1;
        visit(kinds_[kind], share.gemm.n, share.gemm.k, fused);
      }
    }
  }
}

StepCost::Part StepCost::adapters(std::int64_t tokens, std::int64_t different) const {
  Part total;
  const std::int64_t rows = (tokens + different - 1) / different;
  const std::int64_t rank = options_.adapter_rank;
  visit_adapted(tokens,
                [&](std::int64_t layers, std::int64_t n, std::int64_t k, std::int64_t fused) {
                  for (const auto& [out, in] : {std::pair{fused * rank, k}, {n, rank}}) {
                    graph::Operator op{.name = {},
                                       .kind = graph::OperatorKind::gemm,
                                       .gemm = {.batch = different, .m = rows, .n = out, .k = in}};
                    op.flops = flops_of(op.gemm);
                    total.add(kernel(op) * layers, layers);
                  }
                });
  return total;
}

void StepCost::measure_weights() {
  const plan::Plan plan = plan_for(1);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  // Of the first branch and of the rest.
  const auto bytes_of = [&](const std::vector<zoo::ModelOperator>& operators) {
    std::pair<Bytes, Bytes> sums{Bytes(0), Bytes(0)};
    Bytes* sum = &sums.first;
    for (const zoo::ModelOperator& op : operators) {
      const zoo::ModelOperator share = plan::shard(op, plan);
      const Precision& precision = options_.precision;
      const bool narrow = is_product(share) && is_narrow(share, precision.narrow);
      *sum += graph::bytes_of(narrow ? precision.weights : wide_type(), share.parameters);
      if (narrow) {
        *sum +=
            Bytes(std::llround(precision.scale_bits / 8 * static_cast<double>(share.parameters)));
      }
      sum = ends_branch(op, false) ? &sums.second : sum;
    }
    return sums;
  };
  const auto all_of = [](const std::pair<Bytes, Bytes>& sums) { return sums.first + sums.second; };
  const Bytes embedding = all_of(bytes_of(zoo::embedding_operators(model_, shapes)));
  const Bytes head = all_of(bytes_of(zoo::head_operators(model_, shapes)));
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const auto [first, second] =
        bytes_of(zoo::layer_operators(model_, shapes, static_cast<int>(kind)));
    first_branch_ += kinds_[kind] * first;
    second_branch_ += kinds_[kind] * second;
  }
  Bytes layers = first_branch_ + second_branch_;
  first_branch_ = first_branch_ / model_.layers;
  second_branch_ = second_branch_ / model_.layers;
  if (const std::int64_t blocks = options_.window; blocks > 0) {
    const std::int64_t kept =
        options_.retain > 0 ? (model_.layers + options_.retain - 1) / options_.retain : 0;
    layers =
        std::min(layers, blocks / 2 * first_branch_ + ((blocks + 1) / 2 + kept) * second_branch_);
  }
  const std::int64_t pp = options_.degrees.pp;
  weights_ = pp == 1 ? embedding + layers + head : layers / pp + std::max(embedding, head);
  std::int64_t factors = 0;
  visit_adapted(1, [&](std::int64_t each, std::int64_t n, std::int64_t k, std::int64_t fused) {
    factors += each * options_.adapter_rank * (n + fused * k);
  });
  adapter_ = graph::bytes_of(graph::DataType::bf16, factors) / pp;
}

Bytes StepCost::activations(std::int64_t tokens, std::int64_t samples) const {
  const Degrees& d = options_.degrees;
  const bool gated = zoo::is_gated(model_.mlp);
  std::int64_t widest = std::max(model_.ffn, model_.expert.shared_ffn);
  if (recurs_) {  // x, z, B, C and dt, and what the convolution makes of them
    widest = std::max(widest, model_.mamba.inner() + model_.mamba.convolved());
  }
  // Gate and up beside their product, two rows of the stream; logits in 2 bytes and twice in fp32.
  std::int64_t most = tokens * ((gated ? 3 : 2) * widest / d.tp + 2 * model_.hidden);
  if (model_.experts > 0) {
    const bool gathers = options_.dispatch == plan::MoeDispatch::all_gather;
    const std::int64_t inner = model_.expert.ffn / (d.ep > 1 ? 1 : d.tp);
    const std::int64_t row = std::max((gated ? 2 : 1) * inner, model_.hidden) + inner;
    most = std::max(most, (gathers ? d.dp : 1) * tokens * (model_.top_k * row + 2 * model_.hidden));
  }
  return Bytes(2) * most + Bytes(10) * samples * model_.vocab;
}

}  // namespace orrery::step
