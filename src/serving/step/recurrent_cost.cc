// SPDX-License-Identifier: Apache-2.0
#include "base/remembered.h"
#include "serving/step/attention_cost.h"
#include "serving/step/pass_operators.h"
#include "workload/plan/shard.h"

namespace orrery::step {

RecurrentCost::RecurrentCost(const PassPrices& prices) : prices_(prices) {
  for (std::size_t kind = 0; kind < prices.kinds().size(); ++kind) {
    if (prices.is_recurrent(kind)) {
      recurrent_.push_back(kind);
    }
  }
}

/// Returns the chunked scan of training (zoo/mamba_operators.cc) over so many tokens of prompts.
Part RecurrentCost::scan(std::size_t kind, std::int64_t tokens) const {
  Part part;
  const zoo::Model& model = prices_.model();
  const plan::Plan plan = prices_.plan_for(tokens);
  for (zoo::ModelOperator& op :
       zoo::layer_operators(model, plan::shape_options(model, plan), static_cast<int>(kind))) {
    if (op.kind != graph::OperatorKind::scan) {
      continue;
    }
    const zoo::ModelOperator own = plan::shard(std::move(op), plan);
    graph::Operator run{.name = {}, .kind = own.kind, .gemm = own.gemm};
    run.flops = own.forward_flops;
    run.bytes = own.forward_bytes;
    run.kernels = own.forward_kernels;
    part.add(prices_.kernel(run), run.kernels);
  }
  return part;
}

Timed RecurrentCost::update_states(std::int64_t decodes, std::int64_t queries) const {
  const zoo::Mamba& mamba = prices_.model().mamba;
  const std::int64_t passed =
      (mamba.convolved() + mamba.heads + mamba.inner()) / prices_.options().degrees.tp;
  return prices_.elementwise(decodes * ((1 + queries) * state_of_layer(prices_) +
                                        graph::bytes_of(graph::DataType::bf16, queries * passed)));
}

void RecurrentCost::add(const StepShape& shape, Part& total) {
  std::int64_t prompts = 0;
  for (const Prompt& prompt : shape.prompts) {
    prompts += prompt.queries;
  }
  Part scans;
  Part updates;
  for (const std::size_t kind : recurrent_) {
    const std::int64_t layers = prices_.kinds()[kind];
    if (prompts > 0) {
      scans.add(remembered(scans_, {kind, prompts}, [&] { return scan(kind, prompts); }), layers);
    }
    if (shape.decodes > 0) {
      const auto update = [&] { return update_states(shape.decodes, shape.queries); };
      updates.add(remembered(updates_, {shape.decodes, shape.queries}, update) * layers, layers);
    }
  }
  total.add(scans);
  total.add(updates);
}

}  // namespace orrery::step
