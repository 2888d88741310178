// SPDX-License-Identifier: Apache-2.0
/// Runs of several training steps: nothing of a step begins before the kernels of the step before
/// it are done, but for messages, which wait for kernels of their own.
///
/// At the end of a step the compute stream waits for what the update last wrote; then every stream
/// of collectives, copies and work on the host waits for the compute stream.
///
/// So gathers that a step queues at its beginning (ZeRO 1 and 2, ahead) are those of the parameters
/// that the step before has updated.
#include <algorithm>
#include <initializer_list>

#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

/// Streams on which a role has what could begin without a kernel.
class FreeStreams {
 public:
  FreeStreams(const Draft& draft, const RoleDraft& role) {
    add({&role.finish});
    for (const ChunkDraft& chunk : role.chunks) {
      add({&chunk.forward_begin, &chunk.forward_end, &chunk.backward_begin, &chunk.backward_end,
           &chunk.after_weights});
      for (const Block& block : chunk.blocks) {
        const BlockSteps& steps = draft.steps[block.kind];
        add({&block.before_forward, &block.before_backward, &block.after_backward, &steps.forward,
             &steps.recompute, &steps.backward});
      }
    }
  }

  const std::vector<graph::StreamIndex>& streams() const { return streams_; }

 private:
  void add(std::initializer_list<const std::vector<Step>*> lists) {
    for (const std::vector<Step>* steps : lists) {
      for (const Step& step : *steps) {
        const graph::Node::Kind kind = step.node.kind;
        const bool free = kind == graph::Node::Kind::collective ||
                          kind == graph::Node::Kind::copy || kind == graph::Node::Kind::host;
        if (free && std::ranges::find(streams_, step.node.stream) == streams_.end()) {
          streams_.push_back(step.node.stream);
        }
      }
    }
  }

  std::vector<graph::StreamIndex> streams_;
};

}  // namespace

void passes::steps(Draft& draft, const Context& context) {
  draft.run_steps = context.run_steps;
  if (context.run_steps == 1) {
    return;
  }
  for (RoleDraft& role : draft.roles) {
    const FreeStreams streams(draft, role);
    role.finish.push_back(wait_step("step_done", Value::flow, plan::StepPhase::optimizer));
    for (const graph::StreamIndex stream : streams.streams()) {
      Step wait = wait_step("step_done", Value::none, plan::StepPhase::optimizer);
      wait.node.stream = stream;
      wait.after_compute = true;
      role.finish.push_back(std::move(wait));
    }
  }
}

}  // namespace orrery::parallel
