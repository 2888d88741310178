// SPDX-License-Identifier: Apache-2.0
/// Mixture of experts: the share of one rank of etp x ep x edp, and the exchange of tokens.
///
///   boundary   forward                              backward
///   dispatch   before it: tokens to the experts     after it: their gradients back
///   combine    after it: results back               before it: gradients to the experts
///
///   to the experts     alltoall: all-to-all over ep of the rank's T top_k rows, then all-gather of
///                      what arrived over etp
///                      allgather: all-gather of the T rows over ep and etp; a rank keeps its own
///   back               the same in reverse, with reduce-scatters for the all-gathers
///   hierarchical       as alltoall, but a row for several experts of one node crosses between
///                      nodes once, and of one rank is sent once (Node::copies)
///
/// overlap_ep    true: the exchanges run beside the shared expert (its GEMMs before the activation
///               beside the dispatch, the rest beside the combine) and, backward, beside weight
///               gradients. microbatch: beside these and, in pairs, the other microbatch
///               (chunk_templates.h). Otherwise compute waits for them.
///
/// Load: every rank is simulated as the busiest one, with expert_load() times the mean rows. The
/// router's auxiliary loss is ignored.
/// Source: Lepikhin et al. 2020 (GShard); Megatron-Core's MoEAlltoAllTokenDispatcher and
/// MoEAllGatherTokenDispatcher; DeepSeek-AI 2024 (DeepEP's deduplication).
#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "workload/parallel/block_steps.h"
#include "workload/parallel/passes.h"
#include "workload/plan/layout.h"
#include "workload/plan/shard.h"

namespace orrery::parallel {
namespace {

bool of_shared_expert(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::shared_expert && op.depth == 0;
}

class ExchangeInserter {
 public:
  ExchangeInserter(const std::vector<zoo::ModelOperator>& operators, const Context& context)
      : operators_(operators),
        plan_(context.plan),
        etp_(plan::expert_tensor_parallel(context.plan)),
        route_(zoo::token_route(context.model)) {}

  std::vector<Step> forward(std::vector<Step> steps) {
    return insert(std::move(steps), zoo::TensorBoundary::dispatch, zoo::TensorBoundary::combine,
                  plan::StepPhase::forward);
  }
  /// The operators run in reverse, so what they send is exchanged.
  std::vector<Step> backward(std::vector<Step> steps) {
    return insert(std::move(steps), zoo::TensorBoundary::combine, zoo::TensorBoundary::dispatch,
                  plan::StepPhase::backward);
  }

 private:
  bool concurrent_with_shared() const { return plan_.overlap_ep == plan::OverlapExperts::shared; }

  std::vector<Step> insert(std::vector<Step> steps, zoo::TensorBoundary first,
                           zoo::TensorBoundary last, plan::StepPhase phase) {
    result_.clear();
    const bool overlaps = plan_.overlap_ep != plan::OverlapExperts::off;
    std::vector<Step> beside = concurrent_with_shared() ? take_shared(steps) : std::vector<Step>();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const zoo::ModelOperator& op = operator_of(steps[i]);
      const bool begins = i == 0 || steps[i - 1].source != steps[i].source;
      const bool ends = i + 1 == steps.size() || steps[i + 1].source != steps[i].source;
      const bool produced =
          steps[i].part ==
          (phase == plan::StepPhase::forward ? Part::forward : Part::input_gradient);
      const int source = steps[i].source;
      if (op.boundary == first && begins) {
        to_experts(op, source, phase);
        run_concurrently(beside, first_half(beside));
      }
      result_.push_back(std::move(steps[i]));
      if (op.boundary == last && (overlaps ? produced : ends)) {
        from_experts(op, source, phase);
        run_concurrently(beside, beside.size());
        join(source, phase);
      }
    }
    return std::move(result_);
  }

  /// Removes the shared expert's steps. Its sum with the routed ones stays.
  std::vector<Step> take_shared(std::vector<Step>& steps) const {
    std::vector<Step> taken;
    std::vector<Step> rest;
    for (Step& step : steps) {
      const zoo::ModelOperator& op = operator_of(step);
      const bool sum = op.role == graph::OperatorRole::shared_sum;
      (of_shared_expert(op) && !sum ? taken : rest).push_back(std::move(step));
    }
    steps = std::move(rest);
    return taken;
  }

  /// Steps of the shared expert that run beside the first exchange: up to the second GEMM.
  std::size_t first_half(const std::vector<Step>& beside) const {
    if (beside.empty()) {
      return 0;
    }
    const int first = beside.front().source;
    const auto other = std::find_if(beside.begin(), beside.end(), [&](const Step& step) {
      return step.source != first && operator_of(step).has_weight;
    });
    return static_cast<std::size_t>(other - beside.begin());
  }

  /// Issues the next steps of the shared expert, which the exchanges do not wait for.
  void run_concurrently(std::vector<Step>& beside, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      beside[i].writes = beside[i].writes == Value::flow ? Value::beside : beside[i].writes;
      beside[i].reads = beside[i].reads == Value::flow ? Value::beside : beside[i].reads;
      result_.push_back(std::move(beside[i]));
    }
    beside.erase(beside.begin(), beside.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// Joins the shared expert: what follows adds its result, which may still be in flight over tp.
  void join(int source, plan::StepPhase phase) {
    if (concurrent_with_shared() && plan_.tp > 1) {
      result_.push_back(wait_step("shared_expert_done", Value::beside, phase));
      result_.back().source = source;
    }
  }

  void to_experts(const zoo::ModelOperator& op, int source, plan::StepPhase phase) {
    if (plan_.moe_dispatch == plan::MoeDispatch::all_gather) {
      push(plan::Axis::ep, graph::CollectiveKind::all_gather, tokens_of(op) * plan_.ep, source,
           phase);
      push(plan::Axis::etp, graph::CollectiveKind::all_gather, tokens_of(op) * plan_.ep * etp_,
           source, phase);
      return;
    }
    push(plan::Axis::ep, graph::CollectiveKind::all_to_all, op.routed, source, phase);
    push(plan::Axis::etp, graph::CollectiveKind::all_gather, op.routed * etp_, source, phase);
  }

  void from_experts(const zoo::ModelOperator& op, int source, plan::StepPhase phase) {
    if (plan_.moe_dispatch == plan::MoeDispatch::all_gather) {
      push(plan::Axis::etp, graph::CollectiveKind::reduce_scatter, tokens_of(op) * plan_.ep * etp_,
           source, phase);
      push(plan::Axis::ep, graph::CollectiveKind::reduce_scatter, tokens_of(op) * plan_.ep, source,
           phase);
      return;
    }
    push(plan::Axis::etp, graph::CollectiveKind::reduce_scatter, op.routed * etp_, source, phase);
    push(plan::Axis::ep, graph::CollectiveKind::all_to_all, op.routed, source, phase);
  }

  /// The rank's tokens, each once, whatever the load of the experts.
  Bytes tokens_of(const zoo::ModelOperator& op) const {
    return op.routed / (plan::expert_load(plan_, op.experts) * static_cast<double>(route_.copies));
  }

  void push(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes, int source,
            plan::StepPhase phase) {
    if ((axis == plan::Axis::ep ? plan_.ep : etp_) == 1) {
      return;
    }
    result_.push_back(collective_step(axis, kind, bytes, phase));
    result_.back().source = source;
    const bool merges = plan_.moe_dispatch == plan::MoeDispatch::hierarchical;
    if (merges && kind == graph::CollectiveKind::all_to_all) {
      result_.back().node.route = route_;
    }
  }

  const zoo::ModelOperator& operator_of(const Step& step) const {
    return operators_[static_cast<std::size_t>(step.source)];
  }

  const std::vector<zoo::ModelOperator>& operators_;
  const plan::Plan& plan_;
  std::int64_t etp_;
  graph::TokenRoute route_;
  std::vector<Step> result_;
};

/// Puts the work of the sharded experts into the steps that were made of whole ones.
void replace_experts(std::vector<Step>& steps, const std::vector<Step>& sharded,
                     const std::vector<zoo::ModelOperator>& operators) {
  std::map<std::string_view, const graph::Node*> by_name;
  for (const Step& step : sharded) {
    by_name.emplace(step.node.name, &step.node);
  }
  for (Step& step : steps) {
    const auto found = by_name.find(step.node.name);
    if (operators[static_cast<std::size_t>(step.source)].expert && found != by_name.end()) {
      step.node.operators = found->second->operators;
    }
  }
}

}  // namespace

void passes::expert(Draft& draft, const Context& context) {
  for (plan::BlockKind kind = 0; kind < draft.steps.size(); ++kind) {
    std::vector<zoo::ModelOperator>& operators = draft.operators[kind];
    const auto is_expert = [](const zoo::ModelOperator& op) { return op.expert; };
    if (std::none_of(operators.begin(), operators.end(), is_expert)) {
      continue;
    }
    for (zoo::ModelOperator& op : operators) {
      op = op.expert ? plan::shard(std::move(op), context.plan) : std::move(op);
    }
    const plan::Plan& plan = context.plan;
    draft.split.etp = plan::expert_tensor_parallel(plan);
    draft.split.expert_rows = plan::expert_load(plan, context.model.experts) *
                              static_cast<double>(draft.split.etp) / static_cast<double>(plan.tp);
    const BlockSteps sharded = block_steps(operators, plan);
    BlockSteps& steps = draft.steps[kind];
    replace_experts(steps.forward, sharded.forward, operators);
    replace_experts(steps.backward, sharded.backward, operators);
    ExchangeInserter inserter(operators, context);
    steps.forward = inserter.forward(std::move(steps.forward));
    steps.backward = inserter.backward(std::move(steps.backward));
  }
}

}  // namespace orrery::parallel
