// SPDX-License-Identifier: Apache-2.0
/// A technique that no plan asks for: every tau-th step ends a round, whose all-reduce over dp runs
/// beside the next round and is applied at its end (CO2, arXiv 2401.16265):
///
///   end of round t:  the all-reduce of round t is issued, behind that of round t-1, whose end an
///                    update on the compute stream waits for; round 0 updates nothing
///   end of the run:  the last all-reduce comes to its end
#pragma once

#include <string_view>

#include "workload/parallel/lower.h"
#include "workload/parallel/passes.h"
#include "workload/plan/model_parts.h"

namespace orrery::cases {

struct Outer {
  std::int32_t every = 1;  ///< tau
  Bytes bytes{0};          ///< of the all-reduce
  Time update{0};
};

/// A stream that the plans of tests have no other use for.
inline constexpr graph::StreamIndex kOuterStream = plan::stream_of(plan::Axis::replica);

inline parallel::Step outer_wait() {
  parallel::Step wait =
      parallel::wait_step("outer_before", parallel::Value::none, plan::StepPhase::optimizer);
  wait.node.stream = kOuterStream;
  wait.writes = parallel::Value::message;
  return wait;
}

inline void add_outer(const Outer& outer, parallel::RoleDraft& role) {
  const parallel::Turn rounds{.every = outer.every, .at = outer.every - 1};
  const parallel::Turn later{.every = outer.every, .at = 2 * outer.every - 1};
  role.finish.push_back(outer_wait());
  role.finish.back().turn = later;
  parallel::Step sum = parallel::collective_step(plan::Axis::dp, graph::CollectiveKind::all_reduce,
                                                 outer.bytes, plan::StepPhase::optimizer);
  sum.node.name = "outer_sum";
  sum.node.stream = kOuterStream;
  sum.reads = sum.writes = parallel::Value::none;
  sum.turn = rounds;
  role.finish.push_back(sum);
  parallel::Step update = parallel::compute_step({.name = "outer_update",
                                                  .kind = graph::OperatorKind::optimizer,
                                                  .gemm = {},
                                                  .duration = outer.update},
                                                 plan::StepPhase::optimizer);
  update.reads = parallel::Value::message;
  update.turn = later;
  role.finish.push_back(update);
  role.drain = {outer_wait(), parallel::wait_step("outer_done", parallel::Value::message,
                                                  plan::StepPhase::optimizer)};
}

/// A run of `steps` of the plan with the technique as a pass behind pass `optimizer`, without pass
/// `skip`. Requires a sound plan.
inline graph::Workload lowered_with_outer(const zoo::Model& model, const plan::Plan& plan,
                                          std::int64_t steps, const Outer& outer,
                                          std::string_view skip = "") {
  const parallel::Context context{.model = model,
                                  .plan = plan,
                                  .parts = plan::split_model(model, plan).value(),
                                  .run_steps = steps};
  parallel::Draft draft;
  for (const parallel::Pass& pass : parallel::kPasses) {
    if (pass.draft != nullptr && pass.name != skip) {
      pass.draft(draft, context);
    }
    if (pass.name == "optimizer") {
      for (parallel::RoleDraft& role : draft.roles) {
        add_outer(outer, role);
      }
    }
  }
  return parallel::transform(parallel::assemble(draft), {.plan = &plan});
}

}  // namespace orrery::cases
