// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fifo.h"

#include <algorithm>

namespace orrery {

TransferId FifoNetwork::start(Bytes bytes, std::span<const Hop> route, EventQueue& queue) {
  TransferId id = static_cast<TransferId>(messages_.size());
  if (free_.empty()) {
    messages_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  messages_[id] = {bytes, route, 0, queue.now()};
  if (route.empty()) {
    queue.push(queue.now(), kArrive, id);
  } else {
    take_link(id, queue);
  }
  return id;
}

void FifoNetwork::take_link(TransferId id, EventQueue& queue) {
  Message& message = messages_[id];
  const Hop& hop = message.route[message.hop++];
  const Time held = message.bytes / hop.bandwidth;
  const Time start = links_[hop.link].take(queue.now(), held);
  busy_[hop.link] += held;
  message.last_byte = std::max(start + held, message.last_byte) + hop.latency;
  if (message.hop == message.route.size()) {
    queue.push(message.last_byte, kArrive, id);
  } else {
    const bool through = forwarding_ == Forwarding::cut_through;
    queue.push(through ? start + hop.latency : message.last_byte, kHop, id);
  }
}

bool FifoNetwork::handle(const EventQueue::Event& event, EventQueue& queue) {
  if (event.kind == kHop) {
    take_link(event.subject, queue);
    return false;
  }
  free_.push_back(event.subject);
  return true;
}

}  // namespace orrery
