// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/workload.h"
#include "simulate/rank_state.h"
#include "simulate/timeline.h"

namespace orrery::simulate {

/// A SpanRecorder keeps a span of every node that takes time, and the instances that were issued,
/// if it is told to. Otherwise every span is Span::kNone.
class SpanRecorder {
 public:
  SpanRecorder(std::size_t roles, bool on) : on_(on), issued_(roles) {}

  /// A send has two: its own, and behind it that of the receiver's side.
  std::uint32_t open(const Running& running, const RankState& rank, Time now) {
    if (!on_) {
      return Span::kNone;
    }
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
                      .begin = now,
                      .end = Time::max(),
                      .ready = now,
                      .host_begin = rank.host,
                      .host_end = rank.host,
                      .cause = running.cause});
    if (node.kind == graph::Node::Kind::send) {
      spans_.push_back(spans_.back());
    }
    return number;
  }
  /// The host of the rank issues it from now on, for `cost`.
  void issue(std::uint32_t span, const RankState& rank, Time cost) {
    if (on_) {
      spans_[span].host_begin = rank.host;
      spans_[span].host_end = rank.host + cost;
      spans_[span].host_cause = rank.host_cause;
      spans_[span].host_waited = rank.host_waited;
    }
  }
  /// A collective or a copy begins to move; the span of its last member.
  void move(std::uint32_t span, Time now, std::uint32_t last_member) {
    if (on_) {
      spans_[span].begin = now;
      spans_[span].last_member = last_member;
    }
  }
  void close(std::uint32_t span, Time now, Time stall) {
    if (on_) {
      spans_[span].end = now;
      spans_[span].host_stall = stall;
    }
  }
  /// Adds the same message on the receiver's side; returns its span.
  std::uint32_t receive(std::uint32_t send, std::int64_t rank) {
    if (!on_) {
      return Span::kNone;
    }
    Span& received = spans_[send + 1];
    received = spans_[send];
    received.rank = rank;
    received.kind = graph::Node::Kind::receive;
    received.cause = send;
    return send + 1;
  }
  /// Sets the stream of its rank that waited for it.
  void set_stream(std::uint32_t span, graph::StreamIndex stream) {
    if (on_) {
      spans_[span].stream = stream;
    }
  }
  /// Notes a role's instance of that number; those that it has already are left out.
  void note_issued(int role, std::int64_t number, const graph::Instance& instance) {
    auto& issued = issued_[static_cast<std::size_t>(role)];
    if (on_ && number == std::ssize(issued)) {
      issued.push_back(instance);
    }
  }

  std::vector<Span> take_spans() { return std::move(spans_); }
  /// Returns, by role, the instances that have been issued.
  std::vector<std::vector<graph::Instance>> take_instances() { return std::move(issued_); }

 private:
  bool on_;
  std::vector<Span> spans_;
  std::vector<std::vector<graph::Instance>> issued_;
};

}  // namespace orrery::simulate
