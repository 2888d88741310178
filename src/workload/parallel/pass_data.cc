// SPDX-License-Identifier: Apache-2.0
/// Data parallelism and ZeRO (Rajbhandari et al. 2020).
///
///   zero  gradients, once per          parameters
///   0     step: all-reduce             whole
///   1     step: reduce-scatter         gathered after the update (pass optimizer), or block by
///   block
///                                      in the first forward with overlap_param_gather
///   2     microbatch: reduce-scatter   as 1
///   3     microbatch: reduce-scatter   block by block before every forward and backward
///
/// overlap_grad_reduce: buckets reduce on the dp stream as soon as their blocks' backward is done
/// (in the last microbatch when once per step); a bucket holds whole blocks, at least `bucket`
/// bytes. Without it buckets reduce one after the other while compute waits: at the end of the step
/// (0 or 1) or of each backward (2 or 3); bucket 0 is then one buffer. overlap_param_gather: the
/// next block's gather is issued before the block runs; without it a block's gather is issued when
/// the block before it is done, and compute waits.
#include <algorithm>
#include <numeric>

#include "workload/parallel/passes.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostBuckets = 256;  // a tiny bucket size must not make millions of nodes

Step reduction_step(const Plan& plan, Bytes bytes, Phase phase) {
  const CollectiveKind kind =
      plan.zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  return collective_step(Axis::dp, kind, bytes, phase);
}

class GradientReduction {
 public:
  GradientReduction(const Draft& draft, const Context& context)
      : draft_(draft), context_(context) {}

  void overlapped(ChunkDraft& chunk) const {
    const Plan& plan = context_.plan;
    Bytes waiting{0};
    for (auto block = chunk.blocks.rbegin(); block != chunk.blocks.rend(); ++block) {
      waiting += bytes_of(*block);
      const bool last = std::next(block) == chunk.blocks.rend();
      if (waiting > Bytes(0) && (last || waiting >= plan.bucket)) {
        Step step = reduction_step(plan, waiting, Phase::backward);
        step.reads = step.writes = Value::none;
        step.when = plan.zero >= 2 ? When::always : When::last_microbatch;
        block->after_backward.push_back(std::move(step));
        waiting = Bytes(0);
      }
    }
  }

  /// One after the other, each reading what the one before it wrote.
  void exposed(std::vector<Step>& steps, Bytes total, Phase phase, Value value) const {
    const Plan& plan = context_.plan;
    if (total == Bytes(0)) {
      return;
    }
    const std::int64_t wanted = plan.bucket == Bytes(0) ? 1 : (total / plan.bucket.value()).value();
    const std::int64_t buckets = std::clamp<std::int64_t>(wanted, 1, kMostBuckets);
    if (phase == Phase::optimizer) {  // the sum's 1/dp, in a kernel before the reduction
      Operator average{.name = "average_gradients", .type = plan.grad_reduce_type, .gemm = {}};
      average.bytes = 2 * total;
      steps.push_back(compute_step(std::move(average), Phase::backward));
    }
    for (std::int64_t i = 0; i < buckets; ++i) {
      Step step = reduction_step(plan, total / buckets, phase);
      step.reads = step.writes = value;
      steps.push_back(std::move(step));
    }
  }

  Bytes bytes_of(const ChunkDraft& chunk) const {
    Bytes sum{0};
    for (const Block& block : chunk.blocks) {
      sum += bytes_of(block);
    }
    return sum;
  }

 private:
  Bytes bytes_of(const Block& block) const {
    return size_of(context_.plan.grad_reduce_type) * block_parameters(draft_, context_, block.kind);
  }

  const Draft& draft_;
  const Context& context_;
};

/// All-gathers of the blocks' parameters in the order in which they run.
class ParameterGather {
 public:
  ParameterGather(const Draft& draft, const Context& context, When when, Phase phase)
      : draft_(draft), context_(context), when_(when), phase_(phase) {}

  /// order: block numbers as they run. before: the step list in front of a block.
  void add(ChunkDraft& chunk, const std::vector<int>& order,
           std::vector<Step> Block::*before) const {
    const bool ahead = context_.plan.overlap_param_gather;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::vector<Step>& steps = chunk.blocks[static_cast<std::size_t>(order[i])].*before;
      if (i == 0 && !ahead) {  // only when compute has come this far
        steps.push_back(wait_step("block_reached", Value::flow, phase_));
        steps.back().when = when_;
      }
      if (i == 0 || !ahead) {
        steps.push_back(gather(chunk, order[i]));
      }
      if (ahead && i + 1 < order.size()) {
        steps.push_back(gather(chunk, order[i + 1]));
      }
    }
  }

 private:
  Step gather(const ChunkDraft& chunk, int block) const {
    const BlockKind kind = chunk.blocks[static_cast<std::size_t>(block)].kind;
    Step step = collective_step(
        Axis::dp, CollectiveKind::all_gather,
        size_of(context_.plan.compute_type) * block_parameters(draft_, context_, kind), phase_);
    step.reads = step.writes = Value::none;
    step.when = when_;
    step.gathers_block = block;
    return step;
  }

  const Draft& draft_;
  const Context& context_;
  When when_;
  Phase phase_;
};

std::vector<int> block_order(const ChunkDraft& chunk, bool reversed) {
  std::vector<int> order(chunk.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  if (reversed) {
    std::reverse(order.begin(), order.end());
  }
  return order;
}

}  // namespace

void passes::gradients(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  if (plan.dp == 1) {
    return;
  }
  const GradientReduction reduction(draft, context);
  for (RoleDraft& role : draft.roles) {
    Bytes at_end{0};
    for (ChunkDraft& chunk : role.chunks) {
      if (plan.overlap_grad_reduce) {
        reduction.overlapped(chunk);
      } else if (plan.zero >= 2) {
        reduction.exposed(chunk.backward_end, reduction.bytes_of(chunk), Phase::backward,
                          Value::message);
        chunk.backward_end.push_back(wait_step("wait_reduction", Value::message, Phase::backward));
      } else {
        at_end += reduction.bytes_of(chunk);
      }
    }
    reduction.exposed(role.finish, at_end, Phase::optimizer, Value::flow);
  }
}

void passes::zero(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  const bool every_microbatch = plan.zero == 3;
  if (plan.dp == 1 || plan.zero == 0 || (!every_microbatch && !plan.overlap_param_gather)) {
    return;
  }
  const When when = every_microbatch ? When::always : When::first_microbatch;
  const ParameterGather forward(draft, context, when, Phase::forward);
  const ParameterGather backward(draft, context, when, Phase::backward);
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      forward.add(chunk, block_order(chunk, false), &Block::before_forward);
      if (every_microbatch) {
        backward.add(chunk, block_order(chunk, true), &Block::before_backward);
      }
    }
  }
}

}  // namespace orrery
