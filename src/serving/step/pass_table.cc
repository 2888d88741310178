// SPDX-License-Identifier: Apache-2.0
#include "serving/step/pass_table.h"

#include <algorithm>
#include <cmath>

#include "base/remembered.h"
#include "machine/compute/spatial.h"
#include "serving/step/pass_operators.h"
#include "workload/lower/choose.h"
#include "workload/lower/lower_block.h"
#include "workload/plan/axes.h"
#include "workload/plan/shard.h"

namespace orrery::step {
namespace {

/// PyTorch's top-p takes as long as a stream of so many bytes a logit. A radix sort of 4-byte keys
/// and 8-byte indices, softmax, sums, mask, scatter and draws move 270 to 300 by their shapes, at a
/// quarter of the bandwidth. Fitted to dense models on H100 of the declared half of
/// serving_ml_energy (gemma-3-12b and Llama-3.1-8B: 1.2 % of ITL).
constexpr std::int64_t kSortedBytes = 1100;
/// Launches of it, derived from its operations: the sort fills indices, copies keys and takes four
/// digits of 8 bits with a histogram, a scan and a scatter each (14); softmax, sum along the row,
/// threshold, comparison, last column, fill and scatter back (7); softmax, draw and greatest (3).
constexpr int kSortedKernels = 24;

/// An engine's kernels of a layer's operators, whole; attention, which sees requests apart, writes
/// the cache alone.
class PassKernels : public lower::Kernels {
 public:
  PassKernels(const PassPrices& prices, const plan::Plan& plan, std::size_t kind)
      : prices_(prices), plan_(plan), kind_(kind) {}

  void append(const zoo::ModelOperator& op, const lower::OperatorLayouts& /*layouts*/,
              plan::StepPhase /*phase*/, std::int64_t /*shards*/,
              std::vector<lower::Step>& steps) const override {
    const bool expanded_apart = op.role == graph::OperatorRole::key_value_up;  // attend_latent()
    if (!is_left_out(prices_.model(), op) && !expanded_apart) {
      for (graph::Operator& run : prices_.kernels_of(op, plan_)) {
        push(std::move(run), steps);
      }
      steps.back().part = lower::Part::forward;
    }
    if (op.kind == graph::OperatorKind::attention && op.role != graph::OperatorRole::index_scores &&
        !prices_.measures_attention(kind_) && prices_.kind_of(kind_).causal) {
      push(prices_.cache_write_kernel(prices_.kind_of(kind_), plan_.sequence), steps);
    }
  }

 private:
  void push(graph::Operator run, std::vector<lower::Step>& steps) const {
    run.type = run.type == graph::DataType::bf16 ? prices_.wide_type() : run.type;
    steps.push_back(lower::compute_step(std::move(run), plan::StepPhase::forward));
  }

  const PassPrices& prices_;
  const plan::Plan& plan_;
  std::size_t kind_;
};

}  // namespace

const PassRows& PassTable::rows(std::int64_t tokens) {
  return remembered(layers_, tokens, [&] { return layers(tokens); });
}

const Part& PassTable::head(std::int64_t samples) {
  return remembered(heads_, samples, [&] { return head_of(samples); });
}

const Part& PassTable::adapters(std::int64_t tokens, std::int64_t different) {
  return remembered(adapters_, {tokens, different}, [&] { return adapters_of(tokens, different); });
}

LayerNodes PassTable::layer_nodes(std::size_t kind, std::int64_t tokens) const {
  const plan::Plan plan = prices_.plan_for(tokens);
  const PassLayer of_kind = layer_of(kind, plan);
  const auto first_sum = std::ranges::find_if(
      of_kind.choice.operators, [](const auto& layouts) { return !layouts.writes.empty(); });
  const auto last = static_cast<int>(first_sum - of_kind.choice.operators.begin());
  LayerNodes layer;
  layer.routes = of_kind.routes;
  for (lower::Step& step :
       lower::lower_forward(of_kind.operators, of_kind.choice, PassKernels(prices_, plan, kind))) {
    if (step.node.kind == graph::Node::Kind::collective) {
      step.node.bytes = prices_.summed_bytes(tokens);
    }
    layer.first_branch += step.source <= last ? 1 : 0;
    layer.nodes.push_back(std::move(step.node));
  }
  return layer;
}

void PassTable::add_norm_sum(Part& part, std::size_t kind, std::int64_t tokens) const {
  if (options_.degrees.tp == 1 || model_.query_key_norm != zoo::QueryKeyNorm::whole ||
      prices_.kind_of(kind).mixer != zoo::MixerKind::attention) {
    return;
  }
  const std::int64_t width =
      (model_.heads + model_.kv_heads) * model_.head_dim / options_.degrees.tp;
  part.add(prices_.elementwise(graph::bytes_of(prices_.wide_type(), tokens * width)), 1);
  part.add(prices_.over_tensor(graph::CollectiveKind::all_reduce,
                               2 * graph::bytes_of(graph::DataType::fp32, tokens)),
           1);
}

Bytes PassTable::kept_on_chip(std::int64_t tokens) const {
  const plan::Plan plan = prices_.plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  Bytes most{0};
  for (std::size_t kind = 0; kind < prices_.kinds().size(); ++kind) {
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

PassRows PassTable::layers(std::int64_t tokens) const {
  const plan::Plan plan = prices_.plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  PassRows rows;
  Part& total = rows.all;
  prices_.add_operators(total, zoo::embedding_operators(model_, shapes), plan);
  prices_.add_all_reduce(total, tokens);
  rows.outside = total.time;
  for (std::size_t kind = 0; kind < prices_.kinds().size(); ++kind) {
    Part first;
    Part second;
    Part sums;
    const LayerNodes layer = layer_nodes(kind, tokens);
    add_norm_sum(sums, kind, tokens);
    rows.attending.add(sums, prices_.kinds()[kind]);
    const graph::Operator* before = nullptr;
    for (std::size_t i = 0; i < layer.nodes.size(); ++i) {
      const graph::Node& node = layer.nodes[i];
      const bool is_first = i < layer.first_branch;
      const bool is_sum = node.kind == graph::Node::Kind::collective;
      Part ran;
      if (is_sum) {
        prices_.add_sum(ran, before, tokens);
      }
      before = node.operators.empty() ? nullptr : &node.operators.back();
      for (const graph::Operator& op : node.operators) {
        ran.add(prices_.kernel(op), op.kernels);
      }
      (is_sum ? sums : is_first ? first : second).add(ran);
      (is_first ? rows.attending : rows.ffn).add(ran, prices_.kinds()[kind]);
    }
    if (layer.routes) {
      if (exchanges_shards()) {
        sums.add(stream_prices(tokens).all_gather, options_.degrees.tp > 1 ? 1 : 0);
      } else {
        prices_.add_all_reduce(sums, tokens);
      }
      Part exchange;
      prices_.add_exchange(exchange, tokens);
      second.add(exchange);
      rows.exchange += exchange.time * prices_.kinds()[kind];
    }
    for (const Part* part : {&first, &second, &sums}) {
      total.add(*part, prices_.kinds()[kind]);
    }
    rows.second += second.time * prices_.kinds()[kind];
    rows.reducing += sums.time * prices_.kinds()[kind];
  }
  const std::int64_t hops = options_.degrees.pp - 1;
  if (hops > 0) {
    total.add(hops * prices_.hop(tokens), hops);
  }
  const StreamChoice held = stream(tokens);
  rows.fused = {held.saved, held.kernels};
  return rows;
}

void PassTable::add_projector_sums(Part& part, std::int64_t rows) const {
  for (const zoo::Projector& one : model_.projectors) {
    if (options_.degrees.tp > 1 && one.widths.size() > 2) {
      const Bytes size = graph::bytes_of(prices_.wide_type(), rows * one.widths[2]);
      const Time sum = prices_.over_tensor(graph::CollectiveKind::all_reduce, size);
      part.add(one.copies * sum, static_cast<int>(one.copies));
    }
  }
}

Part PassTable::head_of(std::int64_t samples) const {
  Part total;
  if (samples == 0) {
    return total;
  }
  if (embeds(model_)) {
    total.add(
        prices_.elementwise(2 * graph::bytes_of(prices_.wide_type(), samples * model_.hidden)), 1);
    return total;
  }
  const plan::Plan plan = prices_.plan_for(samples);
  prices_.add_operators(total, zoo::head_operators(model_, plan::shape_options(model_, plan)),
                        plan);
  if (model_.head == zoo::HeadKind::projected) {
    add_projector_sums(total, samples);
    return total;
  }
  const std::int64_t logits = samples * model_.vocab;
  if (options_.degrees.tp > 1) {
    total.add(prices_.over_tensor(graph::CollectiveKind::all_gather, Bytes(2) * logits), 1);
  }
  if (const auto known =
          prices_.measured() ? prices_.measured()->layer("sampling", samples) : std::nullopt) {
    total.add(*known, 1);
    return total;
  }
  // Sampling: to fp32 (2 read, 4 written), then the greatest (4 read).
  Bytes moved = Bytes(10) * logits;
  int kernels = 2;
  if (options_.sorted_sampling) {
    moved += Bytes(kSortedBytes) * logits;
    kernels += kSortedKernels;
  }
  total.add(prices_.elementwise(moved, kernels), kernels);
  return total;
}

std::vector<PassTable::Adapted> PassTable::adapted(std::int64_t tokens) const {
  std::vector<Adapted> matrices;
  const plan::Plan plan = prices_.plan_for(tokens);
  const zoo::ShapeOptions shapes = plan::shape_options(model_, plan);
  for (std::size_t kind = 0; kind < prices_.kinds().size(); ++kind) {
    for (const zoo::ModelOperator& op :
         zoo::layer_operators(model_, shapes, static_cast<int>(kind))) {
      if (is_product(op) && !op.expert && is_narrow(op, Narrow::all)) {
        const zoo::ModelOperator share = plan::shard(op, plan);
        const bool pair = op.role == graph::OperatorRole::up && zoo::is_gated(model_.mlp);
        const std::int64_t fused = op.role == graph::OperatorRole::project_qkv ? 3 : pair ? 2 : 1;
        matrices.push_back({prices_.kinds()[kind], share.gemm.n, share.gemm.k, fused});
      }
    }
  }
  return matrices;
}

Part PassTable::adapters_of(std::int64_t tokens, std::int64_t different) const {
  Part total;
  const std::int64_t rows = (tokens + different - 1) / different;
  const std::int64_t rank = options_.adapter_rank;
  for (const Adapted& one : adapted(tokens)) {
    for (const auto& [out, in] : {std::pair{one.fused * rank, one.k}, {one.n, rank}}) {
      const graph::GemmShape gemm{.batch = different, .m = rows, .n = out, .k = in};
      graph::Operator op{.name = {}, .kind = graph::OperatorKind::gemm, .gemm = gemm};
      op.flops = flops_of(gemm);
      total.add(prices_.kernel(op) * one.layers, one.layers);
    }
  }
  return total;
}

PassWeights PassTable::weights() const {
  PassWeights weights;
  const plan::Plan plan = prices_.plan_for(1);
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
      *sum += graph::bytes_of(narrow ? precision.weights_of(share.expert) : prices_.wide_type(),
                              elements);
      if (narrow) {
        *sum += Bytes(std::llround(precision.scale_bits_of(share.expert) / 8 *
                                   static_cast<double>(elements)));
      }
      sum = choice.operators[i].writes.empty() ? sum : &sums.second;
    }
    return sums;
  };
  const auto all_of = [](const std::pair<Bytes, Bytes>& sums) { return sums.first + sums.second; };
  const Bytes embedding = all_of(bytes_of(zoo::embedding_graph(model_, shapes)));
  const Bytes head = embeds(model_) ? Bytes(0) : all_of(bytes_of(zoo::head_graph(model_, shapes)));
  for (std::size_t kind = 0; kind < prices_.kinds().size(); ++kind) {
    const auto [first, second] = bytes_of(zoo::layer_graph(model_, shapes, static_cast<int>(kind)));
    weights.first_branch += prices_.kinds()[kind] * first;
    weights.second_branch += prices_.kinds()[kind] * second;
  }
  Bytes layers = weights.first_branch + weights.second_branch;
  weights.first_branch = weights.first_branch / model_.layers;
  weights.second_branch = weights.second_branch / model_.layers;
  if (const std::int64_t blocks = options_.window; blocks > 0) {
    const std::int64_t kept =
        options_.retain > 0 ? (model_.layers + options_.retain - 1) / options_.retain : 0;
    layers = std::min(layers, blocks / 2 * weights.first_branch +
                                  ((blocks + 1) / 2 + kept) * weights.second_branch);
  }
  const std::int64_t pp = options_.degrees.pp;
  weights.all = pp == 1 ? embedding + layers + head : layers / pp + std::max(embedding, head);
  std::int64_t factors = 0;
  for (const Adapted& one : adapted(1)) {
    factors += one.layers * options_.adapter_rank * (one.n + one.fused * one.k);
  }
  weights.adapter = graph::bytes_of(graph::DataType::bf16, factors) / pp;
  return weights;
}

}  // namespace orrery::step
