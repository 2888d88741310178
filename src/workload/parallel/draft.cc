// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/draft.h"

#include "workload/plan/lora.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery {

Step collective_step(Axis axis, CollectiveKind kind, Bytes bytes, StepPhase phase) {
  Step step;
  step.node.kind = Node::Kind::collective;
  step.node.stream = stream_of(axis);
  step.node.phase = phase;
  step.node.name = std::string(name_of(axis)) + "_" + std::string(name_of(kind));
  step.node.group = axis;
  step.node.collective = kind;
  step.node.bytes = bytes;
  step.reads = Value::flow;
  step.writes = Value::flow;
  return step;
}

Step compute_step(Operator op, StepPhase phase) {
  Step step;
  step.node.kind = Node::Kind::compute;
  step.node.stream = StepStream::compute;
  step.node.phase = phase;
  step.node.name = op.name;
  step.node.operators.push_back(std::move(op));
  step.reads = Value::flow;
  step.writes = Value::flow;
  return step;
}

Step wait_step(std::string name, Value reads, StepPhase phase) {
  Step step;
  step.node.kind = Node::Kind::wait;
  step.node.stream = StepStream::compute;
  step.node.phase = phase;
  step.node.name = std::move(name);
  step.reads = reads;
  return step;
}

namespace {

/// Sum over the operators of `owner` in a block of size(operator, its parameters).
template <class Size>
auto block_sum(const Draft& draft, const Context& context, BlockKind kind, Owner owner, Size size) {
  const bool copy = kind == kHeadBlock && context.model.tied_embedding && !ends_meet(context.plan);
  decltype(size(ModelOperator{}, std::int64_t{})) sum{};
  for (const ModelOperator& op : draft.operators[kind]) {
    if (op.expert == (owner == Owner::expert)) {
      sum += size(op, op.parameters + (copy ? weight_elements(op) : 0));
    }
  }
  return sum;
}

}  // namespace

std::int64_t block_parameters(const Draft& draft, const Context& context, BlockKind kind,
                              Owner owner) {
  return block_sum(draft, context, kind, owner,
                   [](const ModelOperator& op, std::int64_t parameters) {
                     return is_trained(op) ? parameters : 0;
                   });
}

Bytes block_parameter_bytes(const Draft& draft, const Context& context, BlockKind kind,
                            Owner owner) {
  return block_sum(
      draft, context, kind, owner, [&](const ModelOperator& op, std::int64_t parameters) {
        return is_trained(op) ? parameter_bytes(context.plan, op, parameters) : Bytes(0);
      });
}

Bytes gathered_parameter_bytes(const Draft& draft, const Context& context, BlockKind kind,
                               Owner owner) {
  if (context.plan.zero < 3) {
    return block_parameter_bytes(draft, context, kind, owner);
  }
  return block_sum(draft, context, kind, owner,
                   [&](const ModelOperator& op, std::int64_t parameters) {
                     return parameter_bytes(context.plan, op, parameters);
                   });
}

std::int64_t role_parameters(const Draft& draft, const Context& context, const RoleDraft& role,
                             Owner owner) {
  std::int64_t sum = 0;
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      sum += block_parameters(draft, context, block.kind, owner);
    }
  }
  return sum;
}

Bytes role_parameter_bytes(const Draft& draft, const Context& context, const RoleDraft& role,
                           Owner owner) {
  Bytes sum{0};
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      sum += block_parameter_bytes(draft, context, block.kind, owner);
    }
  }
  return sum;
}

}  // namespace orrery
