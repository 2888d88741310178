// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/parallel/passes.h"
#include "workload/plan/layout.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/shard.h"
#include "workload/plan/shares.h"

namespace orrery::parallel {
namespace {

bool carries_activations(plan::Channel channel) {
  return channel == plan::Channel::forward || channel == plan::Channel::returning_forward;
}

/// An End is who sends or receives a message.
struct End {
  const plan::RankLayout& layout;
  std::int64_t stage;
};

Step message_step(const End& own, graph::Node::Kind kind, plan::Channel channel, Bytes bytes,
                  plan::StepPhase phase) {
  Step step;
  step.node.kind = kind;
  step.node.stream =
      kind == graph::Node::Kind::send ? plan::StepStream::pp : plan::StepStream::receive;
  step.node.phase = phase;
  step.node.group = plan::Axis::pp;
  step.node.peer = own.layout.peer(kind, channel, own.stage);
  step.node.channel = static_cast<std::uint32_t>(channel);
  step.node.bytes = bytes;
  step.node.name = std::string(kind == graph::Node::Kind::send ? "send_" : "receive_") +
                   (carries_activations(channel) ? "activations" : "gradients");
  step.reads = kind == graph::Node::Kind::send ? Value::flow : Value::none;
  step.writes = kind == graph::Node::Kind::send ? Value::message : Value::flow;
  return step;
}

/// Adds the two ends of messages to a chunk. With p2p_host_sync the host waits for the message, as
/// Megatron-LM's synchronisation after every exchange does; without overlap_p2p compute waits for
/// the rank's own send.
class Messages {
 public:
  Messages(const Context& context, const plan::RankLayout& layout, std::int64_t stage)
      : plan_(context.plan),
        layout_(layout),
        stage_(stage),
        bytes_(plan::boundary_bytes(context.model, context.plan)) {}

  void receive(std::vector<Step>& steps, plan::Channel channel) const {
    host_work(steps, "post_receive", phase(channel));
    steps.push_back(message_step({layout_, stage_}, graph::Node::Kind::receive, channel, bytes_,
                                 phase(channel)));
    if (plan_.p2p_host_sync) {
      Step wait = wait_step("wait_receive", Value::flow, phase(channel));
      wait.writes = Value::flow;
      wait.node.host_sync = true;
      steps.push_back(std::move(wait));
    }
  }

  void send(std::vector<Step>& steps, plan::Channel channel) const {
    host_work(steps, "post_send", phase(channel));
    steps.push_back(
        message_step({layout_, stage_}, graph::Node::Kind::send, channel, bytes_, phase(channel)));
    if (!plan_.overlap_p2p) {
      Step wait = wait_step("wait_send", Value::message, phase(channel));
      wait.node.host_sync = plan_.p2p_host_sync;
      steps.push_back(std::move(wait));
    }
  }

 private:
  /// Adds the host's work on a message. With p2p_host_sync the device is idle while the host
  /// prepares a message: it allocates or cuts the buffer, calls the communication library, waits
  /// for the request.
  void host_work(std::vector<Step>& steps, std::string name, plan::StepPhase phase) const {
    constexpr int kOperators = 3;
    if (!plan_.p2p_host_sync) {
      return;
    }
    steps.push_back(
        compute_step({.name = std::move(name), .gemm = {}, .kernels = kOperators}, phase));
    steps.back().reads = steps.back().writes = Value::none;
  }

  static plan::StepPhase phase(plan::Channel channel) {
    return carries_activations(channel) ? plan::StepPhase::forward : plan::StepPhase::backward;
  }

  const plan::Plan& plan_;
  const plan::RankLayout& layout_;
  std::int64_t stage_;
  Bytes bytes_;
};

/// The host issues nothing more until the device is idle.
Step host_sync(plan::StepPhase phase) {
  Step wait = wait_step("host_sync", Value::flow, phase);
  wait.node.host_sync = true;
  return wait;
}

/// Messages join consecutive parts of the model, unless both are on this stage: then the next
/// chunk's compute only waits until the last step of this one is done.
void join_parts(ChunkDraft& result, const Context& context, const Draft& draft, std::int64_t stage,
                std::int64_t chunk) {
  const plan::PipelineShape& shape = draft.shape;
  const std::int64_t part = plan::part_of(shape, stage, chunk);
  const bool back = plan::flows_back(shape, chunk);
  const plan::Channel activations =
      back ? plan::Channel::returning_forward : plan::Channel::forward;
  const plan::Channel gradients =
      back ? plan::Channel::returning_backward : plan::Channel::backward;
  const bool turns = plan::turns(shape, stage);
  const Messages messages(context, draft.layout, stage);
  if (turns) {
    result.forward_end.push_back(wait_step("hand_over", Value::flow, plan::StepPhase::forward));
    result.backward_end.push_back(wait_step("hand_over", Value::flow, plan::StepPhase::backward));
  }
  if (part > 0 && !(turns && back)) {
    messages.receive(result.forward_begin, activations);
    messages.send(result.backward_end, gradients);
  }
  if (part + 1 < plan::part_count(shape) && !(turns && !back)) {
    messages.send(result.forward_end, activations);
    messages.receive(result.backward_begin, gradients);
  }
}

ChunkDraft make_chunk(const Context& context, const Draft& draft, std::int64_t stage,
                      std::int64_t chunk) {
  const plan::ModelPart& part =
      context.parts[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  ChunkDraft result;
  for (const plan::BlockKind kind : plan::blocks_of(context.model, context.plan, part)) {
    result.blocks.push_back({.kind = kind});
  }
  if (context.plan.host_sync) {
    result.forward_end.push_back(host_sync(plan::StepPhase::forward));
    result.backward_end.push_back(host_sync(plan::StepPhase::backward));
  }
  join_parts(result, context, draft, stage, chunk);
  if (context.plan.batch_kernels > 0) {
    graph::Operator batch{.name = "prepare_batch", .gemm = {}};
    batch.kernels = static_cast<int>(context.plan.batch_kernels);
    result.forward_begin.push_back(compute_step(std::move(batch), plan::StepPhase::forward));
    result.forward_begin.back().reads = result.forward_begin.back().writes = Value::none;
  }
  return result;
}

/// Gives the blocks of layers their numbers within the stage, chunk after chunk.
std::vector<std::int64_t> number_layers(RoleDraft& role,
                                        const std::vector<plan::ModelPart>& parts) {
  std::vector<std::int64_t> layers;
  for (std::size_t chunk = 0; chunk < role.chunks.size(); ++chunk) {
    std::int64_t layer = parts[chunk].first_layer;
    for (Block& block : role.chunks[chunk].blocks) {
      if (block.kind >= plan::kFirstLayerBlock) {
        block.layer = static_cast<int>(layers.size());
        layers.push_back(layer++);
      }
    }
  }
  return layers;
}

/// The end of the step begins when the compute issued so far and all reductions are done.
std::vector<Step> finish_steps(const plan::Plan& plan) {
  std::vector<Step> steps;
  for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
    for (const plan::GradientHop& hop : plan::gradient_hops(plan, owner)) {
      Step drain = wait_step("reductions_done", Value::none, plan::StepPhase::optimizer);
      drain.node.stream = plan::stream_of(hop.axis);
      drain.writes = Value::message;
      steps.push_back(std::move(drain));
      steps.push_back(wait_step("backward_done", Value::message, plan::StepPhase::optimizer));
    }
  }
  if (steps.empty()) {
    steps.push_back(wait_step("backward_done", Value::none, plan::StepPhase::optimizer));
  }
  steps.back().writes = Value::flow;
  return steps;
}

}  // namespace

void passes::pipeline(Draft& draft, const Context& context) {
  draft.layout = plan::layout_of(context.plan, context.model.experts > 0);
  const std::vector<std::int64_t> shares = *plan::replica_microbatches(context.plan);
  const std::int64_t most = *std::ranges::max_element(shares);
  draft.shape = plan::pipeline_shape(plan::with_microbatches(context.plan, most));
  if (*std::ranges::min_element(shares) < most) {
    draft.shares = shares;
  }
  draft.interleaves_pairs = context.plan.overlap_ep != plan::OverlapExperts::off;
  const bool eager = context.plan.cuda_graphs != plan::CudaGraphs::full;
  draft.host_dispatch = eager ? context.plan.host_dispatch : Time(0);
  draft.pair_ready = wait_step("pair_ready", Value::flow, plan::StepPhase::forward);
  for (zoo::ModelGraph& block : plan::block_graphs(context.model, context.plan)) {
    draft.operators.push_back(std::move(block.operators));
    draft.tensors.push_back(std::move(block.tensors));
  }
  draft.steps.resize(draft.operators.size());
  for (std::int64_t stage = 0; stage < std::ssize(context.parts); ++stage) {  // none: blocks alone
    RoleDraft role;
    for (std::int64_t chunk = 0; chunk < draft.shape.chunks; ++chunk) {
      role.chunks.push_back(make_chunk(context, draft, stage, chunk));
    }
    role.finish = finish_steps(context.plan);
    draft.layers.push_back(number_layers(role, context.parts[static_cast<std::size_t>(stage)]));
    draft.roles.push_back(std::move(role));
  }
}

void passes::copies(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  if (!row_of(plan.schedule).both_ends) {
    return;
  }
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    RoleDraft& role = draft.roles[stage];
    std::int64_t local = 0;
    for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
      const std::int64_t shards = plan::optimizer_shards(plan, owner);
      local += (role_parameters(draft, context, role, owner) + shards - 1) / shards;
    }
    const Bytes half = graph::size_of(plan.grad_reduce_type) * local / 2;
    const auto exchange = [&] {
      for (const graph::Node::Kind kind : {graph::Node::Kind::send, graph::Node::Kind::receive}) {
        role.finish.push_back(message_step({draft.layout, static_cast<std::int64_t>(stage)}, kind,
                                           plan::Channel::mirror, half,
                                           plan::StepPhase::optimizer));
      }
    };
    exchange();
    graph::Operator sum{.name = "sum_copies", .type = plan.grad_reduce_type, .gemm = {}};
    sum.bytes = 3 * half;
    role.finish.push_back(compute_step(std::move(sum), plan::StepPhase::optimizer));
    exchange();
  }
}

}  // namespace orrery::parallel
