// SPDX-License-Identifier: Apache-2.0
/// ZeRO as blocks of integers, and a second copy of parameters inside the node
/// (plan/low_bandwidth.h has bytes and sources): rewrites the gathers and reduce-scatters of the
/// passes before.
///
///   gather of block b   quantize_parameters, gather; at the beginning of b's own steps, once all
///                       its gathers are there, dequantize_parameters, and in a forward pass
///                       copy_secondary
///   reduce-scatter      quantize_gradients, all-to-all, sum_gradients, once for each hop
///
/// Without quantised gathers torchtitan's shards (plan/modules.h) have copy_parameters in the place
/// of dequantize_parameters.
///
/// Beside a backward (overlap_grad_reduce) no kernel waits where it would hold the layers up: the
/// kernel after a hop, and the hop after that, run when the next bucket is ready, the last ones
/// behind the last block.
#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "workload/parallel/passes.h"
#include "workload/plan/layout.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/modules.h"

namespace orrery::parallel {
namespace {

Step streaming(std::string name, Bytes bytes, const Step& like) {
  Step step = compute_step(
      {.name = std::move(name), .type = graph::DataType::fp32, .gemm = {}, .bytes = bytes},
      plan::StepPhase(*like.node.phase));
  step.when = like.when;
  return step;
}

/// Gathers of sharded parameters in a chunk's forward or backward.
class ChunkGathers {
 public:
  ChunkGathers(const plan::Plan& plan, const plan::RankLayout& layout, ChunkDraft& chunk,
               bool backward)
      : plan_(plan), layout_(layout), chunk_(chunk), backward_(backward) {}

  void rewrite() {
    const auto lists = backward_ ? &Block::before_backward : &Block::before_forward;
    std::vector<std::vector<Step>> before;
    before.reserve(chunk_.blocks.size());
    for (Block& block : chunk_.blocks) {
      before.push_back(std::exchange(block.*lists, {}));
    }
    for (std::size_t b = 0; b < chunk_.blocks.size(); ++b) {
      std::vector<Step>& steps = chunk_.blocks[b].*lists;
      const auto is_of_another = [&](const Step& step) {
        return step.gathers_block != kNone && step.gathers_block != static_cast<int>(b);
      };
      const auto others = std::ranges::stable_partition(before[b], std::not_fn(is_of_another));
      const auto append_all = [&](auto first, auto last) {
        std::for_each(first, last, [&](const Step& step) { append(step, steps); });
      };
      append_all(before[b].begin(), others.begin());
      append_arrival(static_cast<int>(b), before, steps);
      append_all(others.begin(), others.end());
    }
  }

 private:
  static constexpr int kNone = -1;

  plan::Axis axis_of(const Step& gather) const {
    const auto axis = plan::Axis(*gather.node.group);
    return backward_ ? plan::backward_gather_axis(plan_, axis) : axis;
  }

  static std::vector<Step> gathers_of(int b, const std::vector<std::vector<Step>>& before) {
    std::vector<Step> gathers;
    for (const std::vector<Step>& steps : before) {
      std::ranges::copy_if(steps, std::back_inserter(gathers),
                           [&](const Step& step) { return step.gathers_block == b; });
    }
    return gathers;
  }

  void append(const Step& step, std::vector<Step>& steps) const {
    if (step.gathers_block == kNone || step.node.kind != graph::Node::Kind::collective) {
      steps.push_back(step);
      return;
    }
    const plan::Axis axis = axis_of(step);
    Step gather = collective_step(axis, graph::CollectiveKind::all_gather, step.node.bytes,
                                  plan::StepPhase(*step.node.phase));
    gather.reads = gather.writes = Value::none;
    gather.when = step.when;
    gather.gathers_block = step.gathers_block;
    if (plan_.quantized_gather) {
      gather.node.bytes = plan::quantized_gather_bytes(plan_, step.node.bytes);
      const Bytes read = step.node.bytes + gather.node.bytes;
      steps.push_back(streaming("quantize_parameters", read / layout_.size(axis), step));
    }
    steps.push_back(std::move(gather));
  }

  /// Appends the kernels that block b's parameters need when they have come.
  void append_arrival(int b, const std::vector<std::vector<Step>>& before,
                      std::vector<Step>& steps) const {
    for (const Step& gather : gathers_of(b, before)) {
      const Bytes whole = gather.node.bytes;
      const bool second = plan_.secondary_shard > 0 && !backward_ &&
                          plan::Axis(*gather.node.group) != plan::Axis::edp;
      if (plan_.quantized_gather) {
        steps.push_back(streaming("dequantize_parameters",
                                  plan::quantized_gather_bytes(plan_, whole) + whole, gather));
        steps.back().before_block = b;
      } else if (plan::copies_shards(plan_)) {
        steps.push_back(streaming("copy_parameters", 2 * whole, gather));
        steps.back().before_block = b;
      }
      if (second) {
        steps.push_back(streaming("copy_secondary", 2 * whole / plan_.secondary_shard, gather));
        steps.back().before_block = b;
      }
    }
  }

  const plan::Plan& plan_;
  const plan::RankLayout& layout_;
  ChunkDraft& chunk_;
  bool backward_;
};

/// A quantised reduction in the order in which its parts run: each part begins with what waits for
/// the exchange before it.
class Reduction {
 public:
  Reduction(const plan::Plan& plan, const plan::RankLayout& layout)
      : plan_(plan), layout_(layout) {}

  static bool is_scatter(const Step& step) {
    return step.node.kind == graph::Node::Kind::collective &&
           step.node.collective == graph::CollectiveKind::reduce_scatter &&
           plan::exposed_of(plan::Axis(*step.node.group)) == plan::Exposed::dp;
  }

  /// Consecutive steps that reduce one bucket, the first of them a reduce-scatter.
  std::vector<std::vector<Step>> parts(const std::vector<Step>& bucket) const {
    std::vector<std::vector<Step>> all(1);
    for (const Step& step : bucket) {
      if (!is_scatter(step)) {
        all.back().push_back(step);
        continue;
      }
      const auto axis = plan::Axis(*step.node.group);
      for (const plan::ReduceHop& hop : plan::reduce_hops(plan_, axis, layout_.size(axis))) {
        append(step, hop, all);
      }
    }
    return all;
  }

 private:
  static constexpr std::array kArrived = {Value::shards, Value::stored, Value::message};

  void append(const Step& scatter, const plan::ReduceHop& hop,
              std::vector<std::vector<Step>>& all) const {
    const Bytes whole = scatter.node.bytes / hop.divisor;
    const Bytes sent = plan::quantized_reduce_bytes(plan_, whole);
    const Value arrived = kArrived[std::min(all.size() - 1, kArrived.size() - 1)];
    Step quantize = streaming("quantize_gradients", whole + sent, scatter);
    quantize.reads = quantize.writes = scatter.reads;
    Step exchange = collective_step(hop.axis, graph::CollectiveKind::all_to_all, sent,
                                    plan::StepPhase(*scatter.node.phase));
    exchange.when = scatter.when;
    exchange.reads = Value::none;
    exchange.writes = arrived;
    Step sum = streaming("sum_gradients", sent + whole / hop.ranks, scatter);
    sum.reads = arrived;
    sum.writes = scatter.writes;
    all.back().push_back(std::move(quantize));
    all.back().push_back(std::move(exchange));
    all.push_back({std::move(sum)});
  }

  const plan::Plan& plan_;
  const plan::RankLayout& layout_;
};

/// Puts the parts of each reduction into a list that waits for it; a list without reductions stays.
void reduce_exposed(const Reduction& reduction, std::vector<Step>& steps) {
  if (std::ranges::none_of(steps, Reduction::is_scatter)) {
    return;
  }
  const std::vector<Step> before = std::move(steps);
  steps.clear();
  for (const std::vector<Step>& part : reduction.parts(before)) {
    steps.insert(steps.end(), part.begin(), part.end());
  }
}

/// Buckets beside the backward of a chunk.
void reduce_beside(const Reduction& reduction, ChunkDraft& chunk) {
  std::deque<std::deque<std::vector<Step>>> under_way;  // buckets, the oldest first
  const auto advance = [&](std::vector<Step>& steps) {
    for (auto& bucket : under_way) {
      steps.insert(steps.end(), bucket.front().begin(), bucket.front().end());
      bucket.pop_front();
    }
    std::erase_if(under_way, [](const auto& bucket) { return bucket.empty(); });
  };
  for (auto block = chunk.blocks.rbegin(); block != chunk.blocks.rend(); ++block) {
    std::vector<Step>& steps = block->after_backward;
    if (std::ranges::none_of(steps, Reduction::is_scatter)) {
      continue;
    }
    const std::vector<std::vector<Step>> parts = reduction.parts(steps);
    under_way.emplace_back(parts.begin(), parts.end());
    steps.clear();
    advance(steps);
  }
  std::vector<Step> rest;
  while (!under_way.empty()) {
    advance(rest);
  }
  chunk.after_weights.insert(chunk.after_weights.begin(), rest.begin(), rest.end());
}

/// The gather of updated parameters at the end of the step.
void quantize_update(const plan::Plan& plan, const plan::RankLayout& layout,
                     std::vector<Step>& steps) {
  const std::vector<Step> before = std::move(steps);
  steps.clear();
  for (const Step& step : before) {
    const bool gather = step.node.kind == graph::Node::Kind::collective &&
                        step.node.collective == graph::CollectiveKind::all_gather;
    if (!gather) {
      steps.push_back(step);
      continue;
    }
    const Bytes whole = step.node.bytes;
    const Bytes sent = plan::quantized_gather_bytes(plan, whole);
    steps.push_back(streaming("quantize_parameters",
                              (whole + sent) / layout.size(plan::Axis(*step.node.group)), step));
    steps.push_back(step);
    steps.back().node.bytes = sent;
    steps.push_back(streaming("dequantize_parameters", whole + sent, step));
  }
}

}  // namespace

void passes::low_bandwidth(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      if (plan.quantized_gather || plan.secondary_shard > 0 || plan::copies_shards(plan)) {
        ChunkGathers(plan, draft.layout, chunk, false).rewrite();
        ChunkGathers(plan, draft.layout, chunk, true).rewrite();
      }
      if (plan.quantized_reduce) {
        const Reduction reduction(plan, draft.layout);
        reduce_beside(reduction, chunk);
        reduce_exposed(reduction, chunk.after_weights);
      }
    }
    if (plan.quantized_reduce) {
      reduce_exposed(Reduction(plan, draft.layout), role.finish);
    }
    if (plan.quantized_gather) {
      quantize_update(plan, draft.layout, role.finish);
    }
  }
}

}  // namespace orrery::parallel
