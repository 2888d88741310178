// SPDX-License-Identifier: Apache-2.0
/// This part of the loop handles collectives, copies and messages (members of Loop; loop_events.h
/// includes it).
#pragma once

#include <utility>
#include <vector>

#include "simulate/loop.h"

namespace orrery::simulate {

template <class Transport>
void Loop<Transport>::communication_began(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    walk_chain(index, queue_.now());
  }
  rank.ledger.begin_communication(queue_.now(), node.takes, node.group);
  touch(index);
}

template <class Transport>
void Loop<Transport>::communication_ended(RankIndex index, const BoundNode& node) {
  RankState& rank = ranks_[index];
  if (rank.chain.chain != nullptr) {
    walk_chain(index, queue_.now());
  }
  rank.ledger.end_communication(queue_.now(), node.takes, node.group);
  touch(index);
}

template <class Transport>
Activity Loop<Transport>::new_activity(bool message) {
  if (free_activities_.empty()) {
    free_activities_.push_back(static_cast<Activity>(moving_.size()));
    moving_.emplace_back();
  }
  const Activity activity = free_activities_.back();
  free_activities_.pop_back();
  moving_[activity].message = message;
  moving_[activity].nodes.clear();
  return activity;
}

template <class Transport>
void Loop<Transport>::start_collective(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  const BoundNode& node = rank.node(running);
  const CommunicatorIndex communicator = wiring_.communicator_of(running.rank, node.group);
  if (communicator == Wiring::kNone || bound_.phases(node.collective, rank.number).empty()) {
    complete(id);
    return;
  }
  running.span = open_span(running);
  if (rank.chain.chain != nullptr) {
    walk_chain(running.rank, queue_.now());  // its nodes take the host before this one
  }
  take_host(rank, running.span, node.host_cost);
  if (rank.host > queue_.now()) {
    queue_.push(rank.host, kHostReady, id);
  } else {
    arrive(id);
  }
}

/// A rank has reached its collective, or copy; the last of the group starts it.
template <class Transport>
void Loop<Transport>::arrive(RunningId id) {
  const Running& running = running_[id];
  if (is_gone(ranks_[running.rank])) {
    held_.push_back({id, true});
    return;
  }
  const BoundNode& node = ranks_[running.rank].node(running);
  if (node.kind == graph::Node::Kind::copy || node.kind == graph::Node::Kind::host) {
    const Activity activity = new_activity(false);
    moving_[activity].nodes.push_back(id);
    if (record_spans_) {
      spans_[running.span].begin = queue_.now();
      spans_[running.span].last_member = running.span;
    }
    communication_began(running.rank, node);
    transport_.begin_copy(activity, running.rank, node.collective);
    return;
  }
  const CommunicatorIndex number = wiring_.communicator_of(running.rank, node.group);
  std::vector<RunningId>& arrived = meetings_[static_cast<std::size_t>(number)].arrived;
  arrived.push_back(id);
  if (arrived.size() < wiring_.communicator(number).members.size()) {
    return;
  }
  const Activity activity = new_activity(false);
  moving_[activity].nodes.swap(arrived);
  for (const RunningId member : moving_[activity].nodes) {
    if (record_spans_) {
      spans_[running_[member].span].begin = queue_.now();
      spans_[running_[member].span].last_member = running.span;
    }
    communication_began(running_[member].rank, node);
  }
  transport_.begin_collective(activity, number, node.collective);
}

template <class Transport>
void Loop<Transport>::start_copy(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  running.span = open_span(running);
  if (rank.chain.chain != nullptr) {
    walk_chain(running.rank, queue_.now());
  }
  take_host(rank, running.span, rank.node(running).host_cost);
  if (rank.host > queue_.now()) {
    queue_.push(rank.host, kHostReady, id);
  } else {
    arrive(id);
  }
}

template <class Transport>
void Loop<Transport>::start_send(RunningId id) {
  Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  const FlowRoute& route = wiring_.route_of(running.rank, node.flow);
  running.span = open_span(running);
  communication_began(running.rank, node);
  communication_began(route.target, node);
  const Activity activity = new_activity(true);
  moving_[activity].nodes.push_back(id);
  transport_.begin_message(activity, route, node.bytes);
}

template <class Transport>
void Loop<Transport>::finish_transport(Activity activity) {
  std::vector<RunningId> nodes;
  nodes.swap(moving_[activity].nodes);
  free_activities_.push_back(activity);
  if (moving_[activity].message) {
    const Running& send = running_[nodes.front()];
    const FlowRoute& route = wiring_.route_of(send.rank, ranks_[send.rank].node(send).flow);
    finish_message(route, nodes.front());
  } else {
    for (const RunningId member : nodes) {
      const Running& running = running_[member];
      communication_ended(running.rank, ranks_[running.rank].node(running));
      close_span(running.span, Time(0));
      complete(member);
    }
  }
  nodes.clear();
  moving_[activity].nodes.swap(nodes);  // keeps its memory
}

template <class Transport>
void Loop<Transport>::finish_message(const FlowRoute& route, RunningId send) {
  const Running running = running_[send];
  const BoundNode& node = ranks_[running.rank].node(running);
  communication_ended(route.source, node);
  communication_ended(route.target, node);
  close_span(running.span, Time(0));
  if (record_spans_) {  // the same message on the receiver's side
    Span& received = spans_[running.span + 1];
    received = spans_[running.span];
    received.rank = ranks_[route.target].number;
    received.kind = graph::Node::Kind::receive;
    received.cause = running.span;
  }
  complete(send);
  Mailbox& mailbox = mailboxes_[route.mailbox];
  const std::uint32_t received = record_spans_ ? running.span + 1 : Span::kNone;
  if (mailbox.waiting.empty()) {
    mailbox.arrived.push(received);
    return;
  }
  const RunningId receive = mailbox.waiting.pop();
  running_[receive].cause = running.span;
  take_message(receive, received);
}

/// Receive and message have met: the receiver's span of it is on the stream that waited for it.
template <class Transport>
void Loop<Transport>::take_message(RunningId receive, std::uint32_t span) {
  if (record_spans_) {
    const Running& running = running_[receive];
    spans_[span].stream = ranks_[running.rank].node(running).stream;
  }
  complete(receive);
}

template <class Transport>
void Loop<Transport>::start_receive(RunningId id) {
  const Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  Mailbox& mailbox = mailboxes_[wiring_.mailbox_of(running.rank, node.flow)];
  if (mailbox.arrived.empty()) {
    mailbox.waiting.push(id);
  } else {
    take_message(id, mailbox.arrived.pop());
  }
}

}  // namespace orrery::simulate
