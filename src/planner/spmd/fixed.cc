// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/fixed.h"

#include <algorithm>

namespace orrery::spmd {
namespace {

bool loads_as(const Signature& signature, Form form) {
  return signature.outputs.front() == form;
}

bool is_expert_weight(const Node& node) {
  return node.experts || node.name.ends_with("_w1") || node.name.ends_with("_w2");
}

bool is_of_experts(const Node& node) {
  return node.experts || node.op.starts_with("einsum");
}

bool sliced_on_batch(const Signature& signature) {
  const Form batch = Form::gather(0);
  const auto is_batch = [&](Form form) { return form == batch; };
  return !signature.inputs.empty() && !signature.outputs.empty() && loads_as(signature, batch) &&
         is_batch(signature.inputs.back()) &&
         (is_batch(signature.inputs.front()) || signature.inputs.front() == Form::full());
}

bool allows(FixedStrategy strategy, const Node& node, const Signature& signature) {
  const bool all_sliced =
      strategy == FixedStrategy::fsdp || strategy == FixedStrategy::expert_parallel_fsdp;
  const bool experts_sliced = strategy != FixedStrategy::data_parallel;
  switch (node.kind) {
    case NodeKind::input:
      return loads_as(signature, Form::gather(0));
    case NodeKind::buffer:
      return loads_as(signature, Form::replicate());
    case NodeKind::parameter:
      if (node.name == "cls_token" || node.name == "pos_embed") {
        return true;
      }
      return loads_as(signature, all_sliced || (experts_sliced && is_expert_weight(node))
                                     ? Form::gather(0)
                                     : Form::replicate());
    case NodeKind::op:
      return !is_of_experts(node) || sliced_on_batch(signature) ||
             strategy == FixedStrategy::expert_parallel ||
             strategy == FixedStrategy::expert_parallel_fsdp;
    case NodeKind::output:
      break;
  }
  return true;
}

}  // namespace

Restriction restriction(FixedStrategy strategy) {
  return [strategy](const Node& node, const Signature& signature) {
    return allows(strategy, node, signature);
  };
}

}  // namespace orrery::spmd
