// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/step.h"

#include <utility>

namespace orrery::lower {

Step collective_step(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes,
                     plan::StepPhase phase) {
  Step step;
  step.node.kind = graph::Node::Kind::collective;
  step.node.stream = plan::stream_of(axis);
  step.node.phase = phase;
  step.node.name = std::string(name_of(axis)) + "_" + std::string(name_of(kind));
  step.node.group = axis;
  step.node.collective = kind;
  step.node.bytes = bytes;
  step.reads = Value::flow;
  step.writes = Value::flow;
  return step;
}

Step compute_step(graph::Operator op, plan::StepPhase phase) {
  Step step;
  step.node.kind = graph::Node::Kind::compute;
  step.node.stream = plan::StepStream::compute;
  step.node.phase = phase;
  step.node.name = op.name;
  step.node.operators.push_back(std::move(op));
  step.reads = Value::flow;
  step.writes = Value::flow;
  return step;
}

Step wait_step(std::string name, Value reads, plan::StepPhase phase) {
  Step step;
  step.node.kind = graph::Node::Kind::wait;
  step.node.stream = plan::StepStream::compute;
  step.node.phase = phase;
  step.node.name = std::move(name);
  step.reads = reads;
  return step;
}

}  // namespace orrery::lower
