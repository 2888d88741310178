// SPDX-License-Identifier: Apache-2.0
/// This part of the loop handles collectives, copies and messages (members of Loop).
#include <utility>
#include <vector>

#include "simulate/loop.h"

namespace orrery::simulate {

void Loop::communicate(RankIndex index, const BoundNode& node, bool begins) {
  RankState& rank = ranks_[index];
  walk_chain(rank, queue_.now());
  begins ? rank.ledger.begin_communication(queue_.now(), node.takes, node.group)
         : rank.ledger.end_communication(queue_.now(), node.takes, node.group);
  touch(index);
}

/// A collective, a copy, or a node of the host: it arrives when the host has issued it.
void Loop::start_moving(RunningId id) {
  Running& running = running_[id];
  RankState& rank = ranks_[running.rank];
  const BoundNode& node = rank.node(running);
  if (node.kind == graph::Node::Kind::collective &&
      (wiring_.communicator_of(running.rank, node.group) == Wiring::kNone ||
       bound_.phases(node.collective, rank.number).empty())) {
    complete(id);
    return;
  }
  running.span = spans_.open(running, rank, queue_.now());
  if (walk_chain(rank, queue_.now())) {  // its nodes take the host before this one
    touch(running.rank);
  }
  spans_.issue(running.span, rank, node.host_cost);
  rank.take_host(running.span, node.host_cost);
  if (rank.host > queue_.now()) {
    queue_.push(rank.host, kHostReady, id);
  } else {
    arrive(id);
  }
}

/// A rank has reached its collective, or copy; the last of the group starts it.
void Loop::arrive(RunningId id) {
  const Running& running = running_[id];
  if (is_gone(ranks_[running.rank])) {
    held_.push_back({id, true});
    return;
  }
  const BoundNode& node = ranks_[running.rank].node(running);
  if (node.kind == graph::Node::Kind::copy || node.kind == graph::Node::Kind::host) {
    const Activity activity = rendezvous_.begin(id, false);
    spans_.move(running.span, queue_.now(), running.span);
    communicate(running.rank, node, true);
    transport_.begin_copy(activity, running.rank, node.collective);
    return;
  }
  const CommunicatorIndex number = wiring_.communicator_of(running.rank, node.group);
  if (!rendezvous_.join(number, id)) {
    return;
  }
  const Activity activity = rendezvous_.begin_collective(number);
  for (const RunningId member : rendezvous_.nodes(activity)) {
    spans_.move(running_[member].span, queue_.now(), running.span);
    communicate(running_[member].rank, node, true);
  }
  transport_.begin_collective(activity, number, node.collective);
}

void Loop::start_send(RunningId id) {
  Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  const FlowRoute& route = wiring_.route_of(running.rank, node.flow);
  running.span = spans_.open(running, ranks_[running.rank], queue_.now());
  communicate(running.rank, node, true);
  communicate(route.target, node, true);
  transport_.begin_message(rendezvous_.begin(id, true), route, node.bytes);
}

void Loop::finish_transport(Activity activity) {
  Rendezvous::Moving moved = rendezvous_.end(activity);
  if (moved.message) {
    const Running& send = running_[moved.nodes.front()];
    const FlowRoute& route = wiring_.route_of(send.rank, ranks_[send.rank].node(send).flow);
    finish_message(route, moved.nodes.front());
  } else {
    for (const RunningId member : moved.nodes) {
      const Running& running = running_[member];
      communicate(running.rank, ranks_[running.rank].node(running), false);
      spans_.close(running.span, queue_.now(), Time(0));
      complete(member);
    }
  }
  rendezvous_.give_back(activity, std::move(moved));
}

void Loop::finish_message(const FlowRoute& route, RunningId send) {
  const Running running = running_[send];
  const BoundNode& node = ranks_[running.rank].node(running);
  communicate(route.source, node, false);
  communicate(route.target, node, false);
  spans_.close(running.span, queue_.now(), Time(0));
  const std::uint32_t received = spans_.receive(running.span, ranks_[route.target].number);
  complete(send);
  Rendezvous::Mailbox& mailbox = rendezvous_.mailbox(route.mailbox);
  if (mailbox.waiting.empty()) {
    mailbox.arrived.push(received);
    return;
  }
  const RunningId receive = mailbox.waiting.pop();
  Running& met = running_[receive];
  met.cause = running.span;
  spans_.set_stream(received, ranks_[met.rank].node(met).stream);
  complete(receive);
}

void Loop::start_receive(RunningId id) {
  const Running& running = running_[id];
  const BoundNode& node = ranks_[running.rank].node(running);
  Rendezvous::Mailbox& mailbox = rendezvous_.mailbox(wiring_.mailbox_of(running.rank, node.flow));
  if (mailbox.arrived.empty()) {
    mailbox.waiting.push(id);
  } else {
    spans_.set_stream(mailbox.arrived.pop(), node.stream);
    complete(id);
  }
}

}  // namespace orrery::simulate
