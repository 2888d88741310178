// SPDX-License-Identifier: Apache-2.0
/// How the loop records spans (members of Loop; loop_events.h includes it).
#pragma once

#include "simulate/loop.h"

namespace orrery::simulate {

template <class Transport>
std::uint32_t Loop<Transport>::open_span(const Running& running) {
  if (!record_spans_) {
    return Span::kNone;
  }
  const RankState& rank = ranks_[running.rank];
  const graph::Instance& instance = rank.window[running.instance].instance;
  const BoundNode& node = rank.node(running);
  const auto number = static_cast<std::uint32_t>(spans_.size());
  spans_.push_back({.rank = rank.number,
                    .stream = node.stream,
                    .kind = node.kind,
                    .group = node.group,
                    .phase = node.phase,
                    .template_index = instance.template_index,
                    .node = static_cast<int>(running.node),
                    .chunk = instance.chunk,
                    .microbatch = instance.microbatch,
                    .step = instance.step,
                    .begin = queue_.now(),
                    .end = Time::max(),
                    .ready = queue_.now(),
                    .host_begin = rank.host,
                    .host_end = rank.host,
                    .cause = running.cause});
  if (node.kind == graph::Node::Kind::send) {
    spans_.push_back(spans_.back());
  }
  return number;
}

template <class Transport>
void Loop<Transport>::close_span(std::uint32_t span, Time stall) {
  if (record_spans_) {
    spans_[span].end = queue_.now();
    spans_[span].host_stall = stall;
  }
}

}  // namespace orrery::simulate
