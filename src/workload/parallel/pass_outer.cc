// SPDX-License-Identifier: Apache-2.0
/// The end of a round of steps that workers take alone (plan/rounds.h has the rules, bytes and
/// sources), after the last step's update.
///
///   local_sgd, slow_mo, diloco   pack, all-reduce, update: one after the other
///   co2      pack; the stream `outer` waits for the all-reduce of the round before; the all-reduce
///            of this round is issued; gap and update once the former has come, beside the latter.
///            The first round updates nothing, and the end of the run waits for the last all-reduce
///   shard_outer   reduce-scatter for all-reduce; after the update of a shard a gather, which is
///            waited for, and what it brings is written; of co2 the reduce-scatter of this round
///            follows, as one behind which the gather queued would be waited for too
///
/// Kernels are memory-bound and count no FLOPs. The first round is number 0 and ends with step
/// tau - 1.
#include "workload/parallel/passes.h"
#include "workload/plan/rounds.h"

namespace orrery::parallel {
namespace {

class RoundEnd {
 public:
  RoundEnd(const plan::Plan& plan, std::int64_t parameters)
      : plan_(plan),
        bytes_(plan::outer_bytes(plan)),
        own_(parameters),
        every_(static_cast<std::int32_t>(plan.local_steps)),
        late_(plan.data_parallel_update == plan::DataParallelUpdate::co2) {}

  void add(RoleDraft& role) {
    steps_ = &role.finish;
    kernel("outer_pack", bytes_.pack * own_, all());
    const graph::CollectiveKind kind = plan_.shard_outer ? graph::CollectiveKind::reduce_scatter
                                                         : graph::CollectiveKind::all_reduce;
    if (late_) {
      push(outer_wait(), later());
    }
    Step sum = communication(kind);
    sum.node.background = late_;
    sum.reads = sum.writes = late_ ? Value::none : Value::flow;
    const bool after_gather = late_ && plan_.shard_outer;
    if (!after_gather) {
      push(sum, all());
    }
    update(late_ ? later() : all());
    if (after_gather) {
      push(sum, all());
    }
    if (late_) {
      role.drain = {outer_wait(),
                    wait_step("outer_done", Value::message, plan::StepPhase::optimizer)};
    }
  }

 private:
  /// Every round, and every one but the first.
  Turn all() const { return {.every = every_, .at = every_ - 1}; }
  Turn later() const { return {.every = every_, .at = 2 * every_ - 1}; }

  void push(Step step, Turn turn) {
    step.turn = turn;
    steps_->push_back(std::move(step));
  }

  void kernel(std::string name, Bytes bytes, Turn turn, Value reads = Value::flow) {
    Step step = compute_step({.name = std::move(name),
                              .kind = graph::OperatorKind::optimizer,
                              .type = graph::DataType::fp32,
                              .gemm = {},
                              .bytes = bytes},
                             plan::StepPhase::optimizer);
    step.reads = reads;
    push(std::move(step), turn);
  }

  Step communication(graph::CollectiveKind kind) const {
    return collective_step(plan::Axis::outer, kind, bytes_.sent * own_, plan::StepPhase::optimizer);
  }

  static Step outer_wait() {
    Step wait = wait_step("outer_before", Value::none, plan::StepPhase::optimizer);
    wait.node.stream = plan::stream_of(plan::Axis::outer);
    wait.writes = Value::message;
    return wait;
  }

  void update(Turn turn) {
    Value reads = late_ ? Value::message : Value::flow;
    if (late_) {
      kernel("outer_gap", bytes_.gap * own_, turn, reads);
      for (const plan::Axis axis : plan::norm_axes(plan_)) {
        push(collective_step(axis, graph::CollectiveKind::all_reduce,
                             2 * graph::size_of(graph::DataType::fp32), plan::StepPhase::optimizer),
             turn);
      }
      reads = Value::flow;
    }
    const std::int64_t shards = plan_.shard_outer ? plan::workers(plan_) : 1;
    kernel("outer_update", bytes_.update * ((own_ + shards - 1) / shards), turn, reads);
    if (plan_.shard_outer) {
      push(communication(graph::CollectiveKind::all_gather), turn);
      kernel("outer_apply", bytes_.apply * own_, turn);
    }
  }

  const plan::Plan& plan_;
  plan::OuterBytes bytes_;
  std::int64_t own_;  ///< parameters of the worker on this rank
  std::int32_t every_;
  bool late_;
  std::vector<Step>* steps_ = nullptr;
};

}  // namespace

void passes::outer(Draft& draft, const Context& context) {
  if (!plan::runs_rounds(context.plan)) {
    return;
  }
  const std::int64_t shards = plan::optimizer_shards(context.plan, plan::Owner::dense);
  for (RoleDraft& role : draft.roles) {
    const std::int64_t parameters = role_parameters(draft, context, role, plan::Owner::dense);
    RoundEnd(context.plan, (parameters + shards - 1) / shards).add(role);
  }
}

}  // namespace orrery::parallel
