// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/block_workload.h"

#include <algorithm>
#include <utility>

#include "workload/parallel/chunk_templates.h"
#include "workload/parallel/passes.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"
#include "workload/plan/schedule_row.h"

namespace orrery::parallel {
namespace {

Draft draft_blocks(const zoo::Model& model, const plan::Plan& plan) {
  const Context context{.model = model, .plan = plan, .parts = {}};
  Draft draft;
  for (auto* pass : {passes::pipeline, passes::tensor, passes::expert, passes::context,
                     passes::blocks, passes::overlap_tensor, passes::recompute}) {
    pass(draft, context);
  }
  return draft;
}

class Blocks {
 public:
  Blocks(Draft draft, bool splits) : splits_(splits) { result_->draft = std::move(draft); }

  std::unique_ptr<const BlockLists> run() {
    for (plan::BlockKind kind = 0; kind < result_->draft.steps.size(); ++kind) {
      auto& passes = result_->templates.emplace_back();
      for (std::size_t i = 0; i < kBlockRuns.size(); ++i) {
        append_passes(kind, i, passes);
      }
      if (result_->draft.interleaves_pairs && !splits_) {
        append_pairs(kind);
      }
      if (splits_) {
        std::array<int, kBlockRuns.size()>& weights = result_->weights.emplace_back();
        for (std::size_t i = 0; i < kBlockRuns.size(); ++i) {
          const ChunkDraft& chunk = run_of(kind, kind < plan::kFirstLayerBlock ? 1 : kBlockRuns[i]);
          weights[i] = append(backward_steps(result_->draft, chunk, BackwardPart::weight_gradients,
                                             "weights", When::always));
        }
      }
    }
    return std::move(result_);
  }

 private:
  /// Appends the passes of a run of kBlockRuns[i] layers; what is no layer runs alone.
  template <typename Passes>
  void append_passes(plan::BlockKind kind, std::size_t i, Passes& passes) {
    const bool layer = kind >= plan::kFirstLayerBlock;
    for (std::size_t pass = 0; pass < kBlockPasses; ++pass) {
      if (static_cast<BlockPass>(pass) == BlockPass::plain && !recomputes(kind)) {
        passes[pass][i] = passes[static_cast<std::size_t>(BlockPass::backward)][i];
      } else if (layer || i == 0) {
        passes[pass][i] = append(kind, static_cast<BlockPass>(pass), layer ? kBlockRuns[i] : 1);
      } else {
        passes[pass][i] = passes[pass][0];
      }
    }
  }

  void append_pairs(plan::BlockKind kind) {
    auto& pairs = result_->pairs.emplace_back();
    for (std::size_t i = 0; i < kBlockRuns.size() && kind >= plan::kFirstLayerBlock; ++i) {
      const ChunkDraft& forward = run_of(kind, kBlockRuns[i]);
      pairs[1][i] = append(pair_steps(result_->draft, forward, forward, "pair", 0));
      pairs[0][i] = pairs[1][i];
      if (recomputes(kind)) {
        const ChunkDraft& again = run_of(kind, kBlockRuns[i], true);
        pairs[0][i] = append(pair_steps(result_->draft, forward, again, "pair", 0));
      }
    }
  }

  bool recomputes(plan::BlockKind kind) const {
    const BlockSteps& steps = result_->draft.steps[kind];
    return !steps.recompute.empty() ||
           std::any_of(steps.backward.begin(), steps.backward.end(), [](const Step& step) {
             return step.node.phase == plan::StepPhase::recompute;
           });
  }

  int append(plan::BlockKind kind, BlockPass pass, int length) {
    const ChunkDraft& chunk = run_of(kind, length, pass == BlockPass::backward);
    const BackwardPart part = splits_ ? BackwardPart::input_gradients : BackwardPart::whole;
    return append(pass == BlockPass::forward
                      ? forward_steps(result_->draft, chunk, "forward", When::always)
                      : backward_steps(result_->draft, chunk, part, "backward", When::always));
  }

  const ChunkDraft& run_of(plan::BlockKind kind, int length, bool recomputes = false) {
    ChunkDraft& chunk = result_->chunks.emplace_back();
    chunk.blocks.assign(static_cast<std::size_t>(length), {.kind = kind, .recomputes = recomputes});
    return chunk;
  }

  int append(StepList list) {
    result_->lists.push_back(std::move(list));
    return static_cast<int>(result_->lists.size()) - 1;
  }

  bool splits_;
  std::unique_ptr<BlockLists> result_ = std::make_unique<BlockLists>();
};

}  // namespace

plan::Plan block_key(const plan::Plan& plan) {
  static const plan::Plan plain;
  plan::Plan key = plan;
  if (key.order.ends_with("dp-pp")) {  // the other axes lie alike, however many stages there are
    key.dp *= key.pp;
    key.pp = 1;
  }
  key.global_batch = key.dp * key.microbatch;
  key.batch_shares.clear();
  key.schedule = row_of(plan.schedule).whole_backwards ? plain.schedule : plan::Schedule::zb_h1;
  key.chunks = plain.chunks;
  key.stage_layers = key.pp > 1 ? "auto" : "";
  key.zero = plain.zero;
  key.shard_params = key.shard_grads = key.shard_optimizer = 0;
  key.reshard_after_forward = plain.reshard_after_forward;
  key.recompute_layers = 0;
  key.offload_optimizer = key.offload_params = plan::Offload::none;
  key.pool_collectives = false;
  key.offload_activations = 0;
  key.pipeline_send = plain.pipeline_send;
  key.overlap_p2p = key.overlap_grad_reduce = key.overlap_param_gather = false;
  key.bucket = plain.bucket;
  key.quantized_params = false;
  key.free_gradients = plan::gradients_come_and_go(plan);
  key.data_parallel_update = plain.data_parallel_update;
  key.local_steps = plain.local_steps;
  key.shard_outer = key.quantized_gather = key.quantized_reduce = false;
  key.secondary_shard = key.reduce_hop = 0;
  key.dp_algorithm = plain.dp_algorithm;
  return key;
}

std::unique_ptr<const BlockLists> list_blocks(const zoo::Model& model, const plan::Plan& plan) {
  return Blocks(draft_blocks(model, plan), plan::splits_backward(plan.schedule)).run();
}

namespace {

void append_work(const std::vector<Step>& pass, BlockWork& work) {
  for (const Step& step : pass) {
    if (step.when == When::always && step.node.phase != plan::StepPhase::recompute) {
      work.kernels.insert(work.kernels.end(), step.node.operators.begin(),
                          step.node.operators.end());
      if (step.node.kind == graph::Node::Kind::collective) {
        work.collectives.push_back(step.node);
      }
    }
  }
}

}  // namespace

std::vector<BlockWork> block_work(const zoo::Model& model, const plan::Plan& plan) {
  std::vector<BlockWork> work;
  for (const BlockSteps& steps : draft_blocks(model, plan).steps) {
    append_work(steps.forward, work.emplace_back());
    append_work(steps.backward, work.back());
  }
  return work;
}

}  // namespace orrery::parallel
