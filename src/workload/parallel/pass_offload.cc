// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/memory/block_memory.h"
#include "workload/parallel/offload.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/remote.h"
#include "workload/plan/shard.h"
#include "workload/plan/update_pieces.h"

namespace orrery::parallel {
namespace {

constexpr int kHostTier = 1;
constexpr int kStorageTier = 2;
constexpr int kLayersBehind = 2;  // a layer waits for the copy of the second one before it

Step copy_step(std::string name, plan::Axis link, Bytes bytes, plan::StepPhase phase) {
  Step step;
  step.node.kind = graph::Node::Kind::copy;
  step.node.stream = plan::stream_of(link);
  step.node.phase = phase;
  step.node.name = std::move(name);
  step.node.group = link;
  step.node.bytes = bytes;
  step.node.tier = kHostTier;
  step.node.direction =
      link == plan::Axis::to_host ? graph::CopyDirection::out : graph::CopyDirection::in;
  return step;
}

/// Returns a step of the update; that on the host and what storage moves stay beyond the device's
/// port.
Step update_step(std::string name, plan::Axis link, Bytes bytes, int tier) {
  Step step =
      copy_step(std::move(name), link, bytes / plan::kUpdatePieces, plan::StepPhase::optimizer);
  step.node.tier = tier;
  if (tier != kHostTier) {
    step.node.direction = graph::CopyDirection::none;
  }
  return step;
}

/// Copies of one chunk's activations.
class ActivationCopies {
 public:
  ActivationCopies(double share, const footprint::BlockMemories& memories, ChunkDraft& chunk)
      : share_(share), memories_(memories), chunk_(chunk) {}

  void insert() {
    const int count = static_cast<int>(chunk_.blocks.size());
    int last = -1;
    for (int b = 0; b < count; ++b) {
      if (offloaded(b) > Bytes(0)) {
        store(b);
        last = b;
      }
    }
    for (int b = 0; b < last; ++b) {
      if (offloaded(b) > Bytes(0)) {
        std::vector<Step>& steps = block(b + 1).before_backward;
        steps.insert(steps.begin(), load(b, Value::flow));
      }
    }
    if (last >= 0) {
      load_last(last);
    }
  }

 private:
  Block& block(int b) { return chunk_.blocks[static_cast<std::size_t>(b)]; }

  Bytes offloaded(int b) {
    const Block& one = block(b);
    const auto& memories = one.recomputes ? memories_.blocks : memories_.plain;
    return one.kind < plan::kFirstLayerBlock ? Bytes(0) : memories[one.kind].kept * share_;
  }

  /// Issued when the block's forward is done.
  void store(int b) {
    Step copy =
        copy_step("store_activations", plan::Axis::to_host, offloaded(b), plan::StepPhase::forward);
    copy.reads = Value::flow;
    const int count = static_cast<int>(chunk_.blocks.size());
    if (b + kLayersBehind < count) {
      copy.gathers_block = b + kLayersBehind;
    }
    std::vector<Step>& steps = b + 1 < count ? block(b + 1).before_forward : chunk_.forward_end;
    steps.insert(steps.begin(), std::move(copy));
  }

  Step load(int b, Value after) {
    Step copy = copy_step("load_activations", plan::Axis::from_host, offloaded(b),
                          plan::StepPhase::backward);
    copy.reads = after;
    copy.gathers_block = b;
    return copy;
  }

  /// Loads the block before which nothing runs in this backward: it may come as soon as it is
  /// stored.
  void load_last(int b) {
    Step stored = wait_step("activations_stored", Value::none, plan::StepPhase::backward);
    stored.node.stream = plan::StepStream::to_host;
    stored.writes = Value::message;
    std::vector<Step>& steps = chunk_.backward_begin;
    steps.insert(steps.begin(), {std::move(stored), load(b, Value::message)});
  }

  double share_;
  const footprint::BlockMemories& memories_;
  ChunkDraft& chunk_;
};

}  // namespace

void append_host_update(std::vector<Step>& steps, const plan::Plan& plan,
                        const OptimizerShare& share) {
  const Bytes gradients = graph::size_of(plan.grad_type) * share.local;
  const Bytes states =
      (graph::size_of(plan.master_type) + 2 * graph::size_of(plan.moment_type)) * share.local;
  const bool nvme = plan.offload_optimizer == plan::Offload::nvme;
  const auto read_states = [&] {
    steps.push_back(update_step("read_states", plan::Axis::from_host, states, kStorageTier));
    steps.back().reads = Value::flow;
    steps.back().writes = Value::input;
  };
  if (nvme) {
    read_states();
  }
  for (std::int64_t i = 0; i < plan::kUpdatePieces; ++i) {
    steps.push_back(update_step("gradients_to_host", plan::Axis::to_host, gradients, kHostTier));
    steps.back().reads = Value::flow;
    steps.push_back(update_step("host_adam", plan::Axis::to_host,
                                gradients + 2 * states + share.copies, kHostTier));
    steps.back().node.direction = graph::CopyDirection::none;
    steps.back().reads = nvme ? Value::input : Value::none;
    steps.back().writes = Value::message;
    if (nvme) {
      steps.push_back(update_step("write_states", plan::Axis::to_host, states, kStorageTier));
    }
    const bool last = i + 1 == plan::kUpdatePieces;
    if (nvme && !last) {
      read_states();
    }
    steps.push_back(
        update_step("parameters_to_device", plan::Axis::from_host, share.copies, kHostTier));
    steps.back().reads = Value::message;
    steps.back().writes = last ? Value::flow : Value::none;
  }
}

void passes::offload(Draft& draft, const Context& context) {
  if (context.plan.offload_activations <= 0) {
    return;
  }
  const footprint::BlockMemories memories = footprint::block_memories(context.model, context.plan);
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      ActivationCopies(context.plan.offload_activations, memories, chunk).insert();
    }
  }
}

}  // namespace orrery::parallel
