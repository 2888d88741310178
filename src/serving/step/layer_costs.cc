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
#include "workload/lower/choose.h"
#include "workload/plan/shard.h"

namespace orrery::step {
namespace {

constexpr std::int64_t kVocabularyMultiple = 64;  // vLLM's DEFAULT_VOCAB_PADDING_SIZE
/// PyTorch's top-p takes as long as a stream of so many bytes a logit. A radix sort of 4-byte keys
/// and 8-byte indices, softmax, sums, mask, scatter and draws move 270 to 300 by their shapes, at a
/// quarter of the bandwidth. Fitted to dense models on H100 of the declared half of
/// serving_ml_energy (gemma-3-12b and Llama-3.1-8B: 1.2 % of ITL).
constexpr std::int64_t kSortedBytes = 1100;
constexpr std::int64_t kSortedKernels = 24;

}  // namespace

plan::Plan StepCost::plan_for(std::int64_t tokens) const {
  plan::Plan plan;
  plan.tp = options_.degrees.tp;
  plan.ep = options_.degrees.ep;
  plan.etp =
      model_.experts > 0 ? options_.degrees.tp * options_.degrees.dp / options_.degrees.ep : 0;
  plan.sequence = tokens;
  plan.attention = zoo::AttentionKernel::flash;
  plan.vocab_multiple = kVocabularyMultiple;
  plan.moe_imbalance = options_.imbalance;
  plan.moe_spread = options_.spread;
  return plan;
}

void StepCost::add_operator(Part& part, zoo::ModelOperator op, const plan::Plan& plan) const {
  for (const graph::Operator& run : kernels_of(std::move(op), plan)) {
    part.add(kernel(run), run.kernels);
  }
}

Bytes StepCost::summed_bytes(std::int64_t tokens) const {
  return graph::bytes_of(wide_type(), tokens * model_.hidden);
}

void StepCost::add_all_reduce(Part& part, std::int64_t tokens) const {
  if (options_.degrees.tp > 1) {
    const Bytes size = summed_bytes(tokens);
    part.add(options_.gateway == Gateway::none ? moved(graph::CollectiveKind::all_reduce, size,
                                                       tensor_group_, options_.all_reduce)
                                               : reduced_at_home(size),
             1);
  }
}

void StepCost::add_sum(Part& part, const graph::Operator* product, std::int64_t tokens) const {
  Part alone;
  add_all_reduce(alone, tokens);
  if (product != nullptr && alone.time > Time(0)) {
    const Time before = kernel(*product).time;
    const Time together = overlapped(*product, tokens);
    if (together < before + alone.time) {
      return part.add(together - before, alone.kernels);
    }
  }
  part.add(alone.time, alone.kernels);
}

void StepCost::add_norm_sum(Part& part, std::size_t kind, std::int64_t tokens) const {
  const zoo::LayerKind layer = model_.kinds.empty() ? zoo::LayerKind{} : model_.kinds[kind];
  if (options_.degrees.tp == 1 || model_.query_key_norm != zoo::QueryKeyNorm::whole ||
      layer.mixer != zoo::MixerKind::attention) {
    return;
  }
  const std::int64_t width =
      (model_.heads + model_.kv_heads) * model_.head_dim / options_.degrees.tp;
  graph::Operator squares{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
  squares.bytes = graph::bytes_of(wide_type(), tokens * width);
  part.add(kernel(squares), 1);
  part.add(
      moved(graph::CollectiveKind::all_reduce, 2 * graph::bytes_of(graph::DataType::fp32, tokens),
            tensor_group_, options_.all_reduce),
      1);
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
    const LayerNodes layer = layer_nodes(kind, tokens);
    add_norm_sum(sums, kind, tokens);
    const graph::Operator* before = nullptr;
    for (std::size_t i = 0; i < layer.nodes.size(); ++i) {
      const graph::Node& node = layer.nodes[i];
      if (node.kind == graph::Node::Kind::collective) {
        add_sum(sums, before, tokens);
      }
      before = node.operators.empty() ? nullptr : &node.operators.back();
      for (const graph::Operator& op : node.operators) {
        (i < layer.first_branch ? first : second).add(kernel(op), op.kernels);
      }
    }
    if (layer.routes) {
      if (exchanges_shards()) {
        sums.add(stream_prices(tokens).all_gather, tensor_group_.count > 1 ? 1 : 0);
      } else {
        add_all_reduce(sums, tokens);
      }
      add_exchange(second, tokens);
    }
    for (const Part* part : {&first, &second, &sums}) {
      total.add(*part, kinds_[kind]);
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

Part StepCost::head(std::int64_t samples) const {
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
  if (options_.sorted_sampling) {
    sampling.bytes += Bytes(kSortedBytes) * logits;
    sampling.kernels += kSortedKernels;
  }
  total.add(kernel(sampling), sampling.kernels);
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
        const bool pair = op.role == graph::OperatorRole::up && zoo::is_gated(model_.mlp);
        const std::int64_t fused = op.role == graph::OperatorRole::project_qkv ? 3 : pair ? 2 : 1;
        visit(kinds_[kind], share.gemm.n, share.gemm.k, fused);
      }
    }
  }
}

Part StepCost::adapters(std::int64_t tokens, std::int64_t different) const {
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
  const auto bytes_of = [&](const zoo::ModelGraph& block) {
    const lower::Choice choice =
        lower::choose(block.operators, block.tensors, model_, plan, {.tensor = true}, 1);
    std::pair<Bytes, Bytes> sums{Bytes(0), Bytes(0)};
    Bytes* sum = &sums.first;
    for (std::size_t i = 0; i < block.operators.size(); ++i) {
      const zoo::ModelOperator& op = block.operators[i];
      const zoo::ModelOperator share = plan::shard(op, plan);
      const Precision& precision = options_.precision;
      const bool narrow = is_product(share) && is_narrow(share, precision.narrow);
      std::int64_t elements = share.parameters;
      if (const graph::GemmShape lying = padded_expert(model_, share, precision);
          share.expert && share.gemm.n * share.gemm.k > 0) {
        elements = std::llround(static_cast<double>(elements) /
                                static_cast<double>(share.gemm.n * share.gemm.k) *
                                static_cast<double>(lying.n * lying.k));
      }
      *sum += graph::bytes_of(narrow ? precision.weights : wide_type(), elements);
      if (narrow) {
        *sum += Bytes(std::llround(precision.scale_bits / 8 * static_cast<double>(elements)));
      }
      sum = choice.operators[i].writes.empty() ? sum : &sums.second;
    }
    return sums;
  };
  const auto all_of = [](const std::pair<Bytes, Bytes>& sums) { return sums.first + sums.second; };
  const Bytes embedding = all_of(bytes_of(zoo::embedding_graph(model_, shapes)));
  const Bytes head = all_of(bytes_of(zoo::head_graph(model_, shapes)));
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const auto [first, second] = bytes_of(zoo::layer_graph(model_, shapes, static_cast<int>(kind)));
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
    const std::int64_t inner = model_.expert.ffn * d.ep / (d.tp * d.dp);
    const std::int64_t row = std::max((gated ? 2 : 1) * inner, model_.hidden) + inner;
    most = std::max(most, (gathers ? d.dp : 1) * tokens * (model_.top_k * row + 2 * model_.hidden));
  }
  return Bytes(2) * most + Bytes(10) * samples * model_.vocab;
}

}  // namespace orrery::step
