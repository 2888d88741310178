// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/attention_ring.h"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::lower {

void append_ring(Step attention, const KeyRing& ring, plan::Axis axis, plan::StepPhase phase,
                 std::vector<Step>& steps) {
  graph::Operator& kernel = attention.node.operators.front();
  kernel.gemm.m *= ring.heads;
  kernel.gemm.batch = std::max<std::int64_t>(1, kernel.gemm.batch / ring.heads);
  if (ring.size == 1) {
    steps.push_back(std::move(attention));
    return;
  }
  kernel.gemm.n = std::max<std::int64_t>(1, kernel.gemm.n / ring.size);
  kernel.flops = kernel.flops / static_cast<double>(ring.size);
  kernel.bytes = kernel.bytes / ring.size;
  const Bytes bytes = ring.bytes * (phase == plan::StepPhase::backward ? 2 : 1);
  const std::string name = attention.node.name;
  const auto push = [&](Step step) -> Step& {
    step.source = attention.source;
    return steps.emplace_back(std::move(step));
  };
  for (std::int64_t i = 0; i < ring.size; ++i) {
    if (i + 1 < ring.size) {
      Step& hop = push(collective_step(axis, graph::CollectiveKind::send_recv, bytes, phase));
      hop.writes = arrival(i + 1);
      hop.reads = i == 0 ? Value::flow : Value::none;
    }
    if (i > 0) {
      push(wait_step("keys_arrived", arrival(i), phase));
    }
    graph::Node& piece = push(attention).node;
    piece.name = piece.operators.front().name = name + "_" + std::to_string(i);
  }
}

}  // namespace orrery::lower
