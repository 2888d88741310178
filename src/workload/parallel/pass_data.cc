// SPDX-License-Identifier: Apache-2.0
/// Data parallelism and ZeRO (Rajbhandari et al. 2020), over all of dp or sharded over fewer ranks
/// (FSDP, HSDP, MiCS). What axes the reductions and gathers of parameters take: data_axes.h.
///
///   zero  gradients                    (parameters: pass_gather.cc)
///   0     all-reduce
///   1     once per step
///   2, 3  shards every microbatch
///
/// overlap_grad_reduce: buckets reduce on the dp stream as soon as their blocks' backward is done
/// (in the last microbatch when once per step); a bucket holds whole blocks, at least
/// plan::bucket_size() bytes. Without it buckets reduce one after the other while compute waits: at
/// the end of the step (0 or 1) or of each backward (2 or 3); bucket 0 is then one buffer, of 5e8
/// elements at most for 2 and 3 (bucket_size).
#include <algorithm>

#include "workload/parallel/passes.h"
#include "workload/plan/data_axes.h"

namespace orrery::parallel {
namespace {

constexpr std::int64_t kMostBuckets = 256;  // a tiny bucket size must not make millions of nodes

class GradientReduction {
 public:
  GradientReduction(const Draft& draft, const Context& context, plan::Owner owner)
      : draft_(draft),
        context_(context),
        owner_(owner),
        hops_(plan::gradient_hops(context.plan, owner)) {}

  bool none() const { return hops_.empty(); }

  /// Buckets beside the backward.
  void overlapped(ChunkDraft& chunk) const {
    const Bytes least = plan::bucket_size(context_.plan);
    Bytes waiting{0};
    for (auto block = chunk.blocks.rbegin(); block != chunk.blocks.rend(); ++block) {
      waiting += bytes_of(*block);
      const bool last = std::next(block) == chunk.blocks.rend();
      if (waiting > Bytes(0) && (last || waiting >= least)) {
        reduce_concurrently(block->after_backward, waiting);
        waiting = Bytes(0);
      }
    }
  }

  /// The hops of every microbatch, or those once per step; one after the other, each reading what
  /// the one before it wrote.
  void exposed(std::vector<Step>& steps, Bytes total, bool every_microbatch, Value value) const {
    const Bytes bucket = plan::bucket_size(context_.plan);
    if (total == Bytes(0)) {
      return;
    }
    const std::int64_t wanted = bucket == Bytes(0) ? 1 : (total / bucket.value()).value();
    const std::int64_t buckets = std::clamp<std::int64_t>(wanted, 1, kMostBuckets);
    if (!every_microbatch && !hops_.front().every_microbatch) {
      average(steps, total);
    }
    for (std::int64_t i = 0; i < buckets; ++i) {
      for (const plan::GradientHop& hop : hops_) {
        if (hop.every_microbatch == every_microbatch) {
          const plan::StepPhase phase =
              every_microbatch ? plan::StepPhase::backward : plan::StepPhase::optimizer;
          steps.push_back(reduction(hop, total / buckets, phase));
          steps.back().reads = steps.back().writes = value;
        }
      }
    }
  }

  Bytes bytes_of(const ChunkDraft& chunk) const {
    Bytes sum{0};
    for (const Block& block : chunk.blocks) {
      sum += bytes_of(block);
    }
    return sum;
  }

  bool reduces_every_microbatch() const { return hops_.front().every_microbatch; }

 private:
  /// The sum's 1/dp, in a kernel before the reduction.
  void average(std::vector<Step>& steps, Bytes total) const {
    graph::Operator op{
        .name = "average_gradients", .type = context_.plan.grad_reduce_type, .gemm = {}};
    op.bytes = 2 * total;
    steps.push_back(compute_step(std::move(op), plan::StepPhase::backward));
  }

  void reduce_concurrently(std::vector<Step>& steps, Bytes bytes) const {
    for (const plan::GradientHop& hop : hops_) {
      Step step = reduction(hop, bytes, plan::StepPhase::backward);
      step.when = hop.every_microbatch ? When::always : When::last_microbatch;
      step.reads = &hop == &hops_.front() ? Value::none : Value::message;
      step.writes = &hop == &hops_.back() ? Value::none : Value::message;
      steps.push_back(std::move(step));
    }
  }

  static Step reduction(const plan::GradientHop& hop, Bytes bytes, plan::StepPhase phase) {
    return collective_step(hop.axis, hop.kind, bytes / hop.divisor, phase);
  }

  Bytes bytes_of(const Block& block) const {
    return graph::size_of(context_.plan.grad_reduce_type) *
           block_parameters(draft_, context_, block.kind, owner_);
  }

  const Draft& draft_;
  const Context& context_;
  plan::Owner owner_;
  std::vector<plan::GradientHop> hops_;
};

void reduce(Draft& draft, const Context& context, plan::Owner owner) {
  const plan::Plan& plan = context.plan;
  const GradientReduction reduction(draft, context, owner);
  if (reduction.none() || plan.offload_params != plan::Offload::none) {
    return;
  }
  for (RoleDraft& role : draft.roles) {
    Bytes at_end{0};
    for (ChunkDraft& chunk : role.chunks) {
      const Bytes bytes = reduction.bytes_of(chunk);
      if (plan.overlap_grad_reduce) {
        reduction.overlapped(chunk);
        continue;
      }
      at_end += bytes;
      if (reduction.reduces_every_microbatch() && bytes > Bytes(0)) {
        reduction.exposed(chunk.after_weights, bytes, true, Value::message);
        chunk.after_weights.push_back(
            wait_step("wait_reduction", Value::message, plan::StepPhase::backward));
      }
    }
    reduction.exposed(role.finish, at_end, false, Value::flow);
  }
}

}  // namespace

void passes::gradients(Draft& draft, const Context& context) {
  reduce(draft, context, plan::Owner::dense);
  reduce(draft, context, plan::Owner::expert);
}

}  // namespace orrery::parallel
