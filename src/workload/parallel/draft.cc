// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/draft.h"

#include "workload/plan/lora.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::parallel {

namespace {

/// Sum over the operators of `owner` in a block of size(operator, its parameters).
template <class Size>
auto block_sum(const Draft& draft, const Context& context, plan::BlockKind kind, plan::Owner owner,
               Size size) {
  const bool copy =
      kind == plan::kHeadBlock && context.model.tied_embedding && !plan::ends_meet(context.plan);
  decltype(size(zoo::ModelOperator{}, std::int64_t{})) sum{};
  for (const zoo::ModelOperator& op : draft.operators[kind]) {
    if (op.expert == (owner == plan::Owner::expert)) {
      sum += size(op, op.parameters + (copy ? plan::weight_elements(op) : 0));
    }
  }
  return sum;
}

}  // namespace

std::int64_t block_parameters(const Draft& draft, const Context& context, plan::BlockKind kind,
                              plan::Owner owner) {
  return block_sum(draft, context, kind, owner,
                   [](const zoo::ModelOperator& op, std::int64_t parameters) {
                     return plan::is_trained(op) ? parameters : 0;
                   });
}

Bytes block_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                            plan::Owner owner) {
  return block_sum(
      draft, context, kind, owner, [&](const zoo::ModelOperator& op, std::int64_t parameters) {
        return plan::is_trained(op) ? plan::parameter_bytes(context.plan, op, parameters)
                                    : Bytes(0);
      });
}

Bytes gathered_parameter_bytes(const Draft& draft, const Context& context, plan::BlockKind kind,
                               plan::Owner owner) {
  if (context.plan.zero < 3) {
    return block_parameter_bytes(draft, context, kind, owner);
  }
  return block_sum(draft, context, kind, owner,
                   [&](const zoo::ModelOperator& op, std::int64_t parameters) {
                     return plan::parameter_bytes(context.plan, op, parameters);
                   });
}

std::int64_t role_parameters(const Draft& draft, const Context& context, const RoleDraft& role,
                             plan::Owner owner) {
  std::int64_t sum = 0;
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      sum += block_parameters(draft, context, block.kind, owner);
    }
  }
  return sum;
}

plan::Matrices role_matrices(const Draft& draft, const RoleDraft& role, plan::Owner owner) {
  plan::Matrices sum;
  const auto add = [&](const zoo::ModelOperator& op, const Block& block) {
    if (op.expert == (owner == plan::Owner::expert)) {
      sum += plan::matrices_of(op, block.kind);
    }
  };
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      for (const zoo::ModelOperator& op : draft.operators[block.kind]) {
        add(op, block);
      }
    }
  }
  return sum;
}

Bytes role_parameter_bytes(const Draft& draft, const Context& context, const RoleDraft& role,
                           plan::Owner owner) {
  Bytes sum{0};
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      sum += block_parameter_bytes(draft, context, block.kind, owner);
    }
  }
  return sum;
}

}  // namespace orrery::parallel
