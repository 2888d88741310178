// SPDX-License-Identifier: Apache-2.0
/// Recurrent layers (Mamba-2), which see nothing but a state of fixed size.
#include <algorithm>

#include "serving/step/pass_operators.h"
#include "serving/step/step_cost.h"
#include "workload/plan/shard.h"

namespace orrery::step {

/// The chunked scan of training (zoo/mamba_operators.cc) over so many tokens of prompts.
Part StepCost::scan(std::size_t kind, std::int64_t tokens) const {
  Part part;
  const plan::Plan plan = plan_for(tokens);
  for (zoo::ModelOperator& op :
       zoo::layer_operators(model_, plan::shape_options(model_, plan), static_cast<int>(kind))) {
    if (op.kind != graph::OperatorKind::scan) {
      continue;
    }
    const zoo::ModelOperator own = plan::shard(std::move(op), plan);
    graph::Operator run{.name = {}, .kind = own.kind, .gemm = own.gemm};
    run.flops = own.forward_flops;
    run.bytes = own.forward_bytes;
    run.kernels = own.forward_kernels;
    part.add(kernel(run), run.kernels);
  }
  return part;
}

/// A token each of so many requests: their states are read and written, x, B, C and dt read, y
/// written.
Part StepCost::update_states(std::int64_t decodes) const {
  const zoo::Mamba& mamba = model_.mamba;
  const std::int64_t passed =
      (mamba.convolved() + mamba.heads + mamba.inner()) / options_.degrees.tp;
  graph::Operator run{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
  run.bytes = decodes * (2 * state_of_layer() + graph::bytes_of(graph::DataType::bf16, passed));
  Part part;
  part.add(kernel(run), 1);
  return part;
}

Part StepCost::recur(const StepShape& shape) {
  std::int64_t prompts = 0;
  for (const Prompt& prompt : shape.prompts) {
    prompts += prompt.queries;
  }
  Part total;
  for (const auto& [tokens, parts] : {std::pair{prompts, &scans_}, {shape.decodes, &updates_}}) {
    if (tokens == 0) {
      continue;
    }
    const auto [found, fresh] = parts->try_emplace(tokens);
    for (std::size_t kind = 0; fresh && kind < kinds_.size(); ++kind) {
      if (is_recurrent(kind)) {
        const Part one = parts == &scans_ ? scan(kind, tokens) : update_states(tokens);
        found->second.add(one, kinds_[kind]);
      }
    }
    total.add(found->second);
  }
  return total;
}

}  // namespace orrery::step
