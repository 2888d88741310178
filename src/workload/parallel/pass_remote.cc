// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/parallel/passes.h"
#include "workload/parallel/remote.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/update_pieces.h"

namespace orrery::parallel {
namespace {

/// `sharers`: a communicator whose ranks move the same bytes, or none.
Step remote_copy(std::string name, plan::Axis link, graph::GroupIndex sharers, Bytes bytes,
                 plan::StepPhase phase) {
  Step step;
  step.node.kind = graph::Node::Kind::copy;
  step.node.stream = plan::stream_of(link);
  step.node.phase = phase;
  step.node.name = std::move(name);
  step.node.group = link;
  step.node.sharers = sharers;
  step.node.bytes = bytes;
  step.node.tier = graph::kRemoteTier;
  step.after_compute = true;
  return step;
}

Step own_copy(std::string name, plan::Axis link, Bytes bytes, plan::StepPhase phase) {
  return remote_copy(std::move(name), link, {}, bytes, phase);
}

/// Ranks that share an owner's parameters, and over which communicator.
struct Sharers {
  std::int64_t count = 1;
  plan::Axis axis = plan::Axis::dp;
};
Sharers sharers_of(const plan::Plan& plan, plan::Owner owner) {
  return owner == plan::Owner::dense ? Sharers{plan.dp * plan.cp, plan::Axis::dp}
                                     : Sharers{plan::expert_data_parallel(plan), plan::Axis::edp};
}

/// Parameters of a chunk's blocks in one direction.
class Loads {
 public:
  Loads(const Draft& draft, const Context& context, ChunkDraft& chunk, plan::StepPhase phase)
      : draft_(draft), context_(context), chunk_(chunk), phase_(phase) {
    for (std::size_t b = 0; b < chunk.blocks.size(); ++b) {
      order_.push_back(static_cast<int>(b));
    }
    if (phase == plan::StepPhase::backward) {
      std::reverse(order_.begin(), order_.end());
    }
  }

  void insert() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Block& block = chunk_.blocks[static_cast<std::size_t>(order_[i])];
      std::vector<Step>& steps =
          phase_ == plan::StepPhase::forward ? block.before_forward : block.before_backward;
      if (context_.plan.overlap_param_gather) {
        insert_ahead(i, steps);
      } else {
        if (i == 0) {  // only when compute has come this far
          steps.push_back(wait_step("block_reached", Value::flow, phase_));
        }
        load_shards(i, steps);
        bring(i, steps);
      }
    }
  }

 private:
  /// Inserts what runs before block i: the gather of all of block i + 1, whose shards are there,
  /// and the load of the shards of i + 2.
  void insert_ahead(std::size_t i, std::vector<Step>& steps) {
    if (i == 0) {
      load_shards(0, steps);
      bring(0, steps);
      load_shards(1, steps);
    }
    bring(i + 1, steps);
    load_shards(i + 2, steps);
  }

  bool gathered(plan::Owner owner) const {
    return sharers_of(context_.plan, owner).count > 1 && !context_.plan.pool_collectives;
  }

  Bytes bytes_of(std::size_t i, plan::Owner owner) const {
    const plan::BlockKind kind = chunk_.blocks[static_cast<std::size_t>(order_[i])].kind;
    return gathered_parameter_bytes(draft_, context_, kind, owner);
  }

  /// Loads the shards of owners whose parameters the network gathers.
  void load_shards(std::size_t i, std::vector<Step>& steps) const {
    for (const plan::Owner owner : plan::kOwners) {
      if (i >= order_.size() || !gathered(owner) || bytes_of(i, owner) == Bytes(0)) {
        continue;
      }
      const Bytes shard = bytes_of(i, owner) / sharers_of(context_.plan, owner).count;
      steps.push_back(own_copy("load_parameter_shards", plan::Axis::from_host, shard, phase_));
      steps.back().writes = Value::shards;
    }
  }

  void bring(std::size_t i, std::vector<Step>& steps) const {
    for (const plan::Owner owner : plan::kOwners) {
      if (i >= order_.size() || bytes_of(i, owner) == Bytes(0)) {
        continue;
      }
      const Sharers sharers = sharers_of(context_.plan, owner);
      if (gathered(owner)) {
        steps.push_back(collective_step(sharers.axis, graph::CollectiveKind::all_gather,
                                        bytes_of(i, owner), phase_));
        steps.back().reads = Value::shards;
        steps.back().writes = Value::none;
      } else {
        const graph::GroupIndex members =
            sharers.count > 1 ? graph::GroupIndex(sharers.axis) : graph::GroupIndex();
        steps.push_back(remote_copy("load_parameters", plan::Axis::from_host, members,
                                    bytes_of(i, owner), phase_));
      }
      steps.back().gathers_block = order_[i];
    }
  }

  const Draft& draft_;
  const Context& context_;
  ChunkDraft& chunk_;
  plan::StepPhase phase_;
  std::vector<int> order_;
};

/// Gradients of a block, as soon as its backward is done.
void store_gradients(const Draft& draft, const Context& context, Block& block) {
  const plan::Plan& plan = context.plan;
  for (const plan::Owner owner : plan::kOwners) {
    const std::int64_t parameters = block_parameters(draft, context, block.kind, owner);
    if (parameters == 0) {
      continue;
    }
    const Sharers sharers = sharers_of(plan, owner);
    const Bytes travels = graph::size_of(plan.grad_reduce_type) * parameters;
    const Bytes stays = graph::size_of(plan.grad_type) * parameters / sharers.count;
    std::vector<Step>& steps = block.after_backward;
    if (sharers.count > 1 && plan.pool_collectives) {
      steps.push_back(remote_copy("store_gradient_sums", plan::Axis::to_host, sharers.axis, travels,
                                  plan::StepPhase::backward));
    } else {
      if (sharers.count > 1) {
        steps.push_back(collective_step(sharers.axis, graph::CollectiveKind::reduce_scatter,
                                        travels, plan::StepPhase::backward));
        steps.back().reads = Value::none;
        steps.back().writes = Value::stored;
      }
      steps.push_back(
          own_copy("store_gradients", plan::Axis::to_host, stays, plan::StepPhase::backward));
      steps.back().reads = sharers.count > 1 ? Value::stored : Value::none;
    }
    if (!plan.overlap_grad_reduce) {
      steps.back().writes = Value::message;
      steps.push_back(wait_step("wait_gradients", Value::message, plan::StepPhase::backward));
    }
  }
}

Bytes states_of(const plan::Plan& plan, std::int64_t parameters) {
  return (graph::size_of(plan.master_type) + 2 * graph::size_of(plan.moment_type)) * parameters;
}

}  // namespace

void begin_streamed_update(std::vector<Step>& steps) {
  Step all_stored = wait_step("gradients_stored", Value::none, plan::StepPhase::optimizer);
  all_stored.node.stream = plan::StepStream::to_host;
  all_stored.writes = Value::stored;
  steps.push_back(std::move(all_stored));
}

namespace {

/// Returns what the update of piece i reads.
Value update_input(std::int64_t i) {
  return i % 2 == 0 ? Value::even : Value::odd;
}

}  // namespace

void append_update_loads(std::vector<Step>& steps, const plan::Plan& plan,
                         const OptimizerShare& piece, std::int64_t i) {
  const bool with_gradients = plan.offload_params != plan::Offload::none;
  const Bytes gradients = graph::size_of(plan.grad_type) * (with_gradients ? piece.local : 0);
  for (std::int64_t p = i == 0 ? 0 : i + 1; p <= i + 1 && p < plan::kUpdatePieces; ++p) {
    steps.push_back(own_copy("load_states", plan::Axis::from_host,
                             states_of(plan, piece.local) + gradients, plan::StepPhase::optimizer));
    steps.back().reads = Value::stored;
    steps.back().writes = update_input(p);
  }
  steps.push_back(wait_step("states_loaded", update_input(i), plan::StepPhase::optimizer));
}

void append_update_store(std::vector<Step>& steps, const plan::Plan& plan, bool has_master,
                         const OptimizerShare& piece) {
  const bool parameters = plan.offload_params != plan::Offload::none && has_master;
  steps.push_back(own_copy("store_states", plan::Axis::to_host,
                           states_of(plan, piece.local) + (parameters ? piece.copies : Bytes(0)),
                           plan::StepPhase::optimizer));
}

void passes::remote(Draft& draft, const Context& context) {
  if (context.plan.offload_params == plan::Offload::none) {
    return;
  }
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      Loads(draft, context, chunk, plan::StepPhase::forward).insert();
      Loads(draft, context, chunk, plan::StepPhase::backward).insert();
      for (Block& block : chunk.blocks) {
        store_gradients(draft, context, block);
      }
    }
  }
}

}  // namespace orrery::parallel
