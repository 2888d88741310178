// SPDX-License-Identifier: Apache-2.0
/// Context parallelism of degree c: every rank has S/c tokens of each sequence (in two pieces, one
/// from each end, so that causal attention is balanced) and needs the keys and values of all.
///
///   p2p         c - 1 ring steps; step i brings K and V of another rank beside the attention over
///               those that are there. Attention is cut into c kernels. Backward: the same with K,
///               V and their gradients, twice the bytes.
///   all_gather  K and V are gathered before attention and before its backward; their gradients are
///               reduce-scattered after it
///   a2a         all-to-all of Q, K, V from tokens to heads before attention and of its result
///               back; backward the same with gradients. Attention has all tokens of 1/c of the
///               heads
///   a2a+p2p     a2a among cp_a2a ranks, then a ring over the c / cp_a2a others
///
/// Source: Liu et al. 2023 (ring attention); Jacobs et al. 2023 (DeepSpeed-Ulysses); Fang & Zhao
/// 2024 (USP); Llama Team 2024 (all-gather). Ignores: the correction of partial results, whose
/// bytes are small.
#include <algorithm>

#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

/// Ring and all-to-all parts of the plan's exchange.
struct ContextDegrees {
  std::int64_t ring = 1;
  std::int64_t heads = 1;
  plan::Axis ring_axis = plan::Axis::cp;
  plan::Axis heads_axis = plan::Axis::cp;
};

ContextDegrees degrees_of(const plan::Plan& plan) {
  switch (plan.cp_exchange) {
    case plan::ContextExchange::p2p:
      return {.ring = plan.cp};
    case plan::ContextExchange::a2a:
      return {.heads = plan.cp};
    case plan::ContextExchange::a2a_p2p:
      return {.ring = plan.cp / plan.cp_a2a,
              .heads = plan.cp_a2a,
              .ring_axis = plan.cp_a2a == 1 ? plan::Axis::cp : plan::Axis::cp_ring,
              .heads_axis = plan.cp_a2a == plan.cp ? plan::Axis::cp : plan::Axis::cp_a2a};
    case plan::ContextExchange::all_gather:
      break;
  }
  return {};
}

class ContextInserter {
 public:
  ContextInserter(const std::vector<zoo::ModelOperator>& operators, const plan::Plan& plan)
      : operators_(operators), plan_(plan), degrees_(degrees_of(plan)) {}

  std::vector<Step> insert(std::vector<Step> steps, plan::StepPhase phase) {
    result_.clear();
    for (Step& step : steps) {
      const zoo::ModelOperator& op = operators_[static_cast<std::size_t>(step.source)];
      if (op.key_value == Bytes(0) || step.node.kind != graph::Node::Kind::compute) {
        result_.push_back(std::move(step));
        continue;
      }
      source_ = step.source;
      phase_ = phase;
      attend(std::move(step), op);
    }
    return std::move(result_);
  }

 private:
  bool backward() const { return phase_ == plan::StepPhase::backward; }

  void attend(Step step, const zoo::ModelOperator& op) {
    const Bytes all = op.query + op.key_value;
    if (plan_.cp_exchange == plan::ContextExchange::all_gather) {
      push(plan::Axis::cp, graph::CollectiveKind::all_gather, op.key_value * plan_.cp);
      result_.push_back(std::move(step));
      if (backward()) {
        push(plan::Axis::cp, graph::CollectiveKind::reduce_scatter, op.key_value * plan_.cp);
      }
      return;
    }
    if (degrees_.heads > 1) {
      push(degrees_.heads_axis, graph::CollectiveKind::all_to_all, backward() ? op.query : all);
    }
    ring(std::move(step), op.key_value * (backward() ? 2 : 1));
    if (degrees_.heads > 1) {
      push(degrees_.heads_axis, graph::CollectiveKind::all_to_all, backward() ? all : op.query);
    }
  }

  /// Exchange i runs beside piece i - 1 and is what piece i waits for.
  void ring(Step step, Bytes bytes) {
    graph::Operator& kernel = step.node.operators.front();
    reshape(kernel);
    if (degrees_.ring == 1) {
      result_.push_back(std::move(step));
      return;
    }
    kernel.gemm.n = std::max<std::int64_t>(1, kernel.gemm.n / degrees_.ring);
    kernel.flops = kernel.flops / static_cast<double>(degrees_.ring);
    kernel.bytes = kernel.bytes / degrees_.ring;
    const std::string name = step.node.name;
    for (std::int64_t i = 0; i < degrees_.ring; ++i) {
      if (i + 1 < degrees_.ring) {
        push(degrees_.ring_axis, graph::CollectiveKind::send_recv, bytes);
        result_.back().writes = arrival(i + 1);
        result_.back().reads = i == 0 ? Value::flow : Value::none;
      }
      if (i > 0) {
        result_.push_back(wait_step("keys_arrived", arrival(i), phase_));
        result_.back().source = source_;
      }
      result_.push_back(step);
      result_.back().node.name = name + "_" + std::to_string(i);
      result_.back().node.operators.front().name = result_.back().node.name;
    }
  }

  /// All-to-all: 1/u of the heads, and u times the queries that the rank has itself.
  void reshape(graph::Operator& kernel) const {
    kernel.gemm.m *= degrees_.heads;
    kernel.gemm.batch = std::max<std::int64_t>(1, kernel.gemm.batch / degrees_.heads);
  }

  static Value arrival(std::int64_t step) { return step % 2 == 0 ? Value::even : Value::odd; }

  void push(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes) {
    result_.push_back(collective_step(axis, kind, bytes, phase_));
    result_.back().source = source_;
  }

  const std::vector<zoo::ModelOperator>& operators_;
  const plan::Plan& plan_;
  ContextDegrees degrees_;
  int source_ = -1;
  plan::StepPhase phase_ = plan::StepPhase::forward;
  std::vector<Step> result_;
};

}  // namespace

void passes::context(Draft& draft, const Context& context) {
  if (context.plan.cp == 1) {
    return;
  }
  for (plan::BlockKind kind = 0; kind < draft.steps.size(); ++kind) {
    ContextInserter inserter(draft.operators[kind], context.plan);
    BlockSteps& steps = draft.steps[kind];
    steps.forward = inserter.insert(std::move(steps.forward), plan::StepPhase::forward);
    steps.backward = inserter.insert(std::move(steps.backward), plan::StepPhase::backward);
  }
}

}  // namespace orrery::parallel
