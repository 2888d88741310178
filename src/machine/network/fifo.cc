// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fifo.h"

#include <algorithm>

namespace orrery {

TransferId FifoNetwork::add(Time now, Bytes bytes, std::span<const Hop> route) {
  if (free_.empty()) {
    free_.push_back(static_cast<TransferId>(messages_.size()));
    messages_.emplace_back();
  }
  const TransferId id = free_.back();
  free_.pop_back();
  messages_[id] = {bytes, route, 0, now};
  return id;
}

FifoNetwork::Step FifoNetwork::step(Time now, TransferId id) {
  Message& message = messages_[id];
  if (message.hop == message.route.size()) {
    return {now, true};  // from a device to itself
  }
  const Hop& hop = message.route[message.hop++];
  const Time held = message.bytes / hop.bandwidth;
  const Time start = links_[hop.link].take(now, held);
  busy_[hop.link] += held;
  message.last_byte = std::max(start + held, message.last_byte) + hop.latency;
  const bool through = forwarding_ == Forwarding::cut_through;
  const bool last = message.hop == message.route.size();
  return {through && !last ? start + hop.latency : message.last_byte, last};
}

void FifoNetwork::push(TransferId id, EventQueue& queue) {
  const Step next = step(queue.now(), id);
  queue.push(next.when, next.arrives ? kArrive : kHop, id);
}

TransferId FifoNetwork::start(Bytes bytes, std::span<const Hop> route, EventQueue& queue) {
  const TransferId id = add(queue.now(), bytes, route);
  push(id, queue);
  return id;
}

bool FifoNetwork::handle(const EventQueue::Event& event, EventQueue& queue) {
  if (event.kind == kHop) {
    push(event.subject, queue);
    return false;
  }
  remove(event.subject);
  return true;
}

}  // namespace orrery
