// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fifo.h"

#include <algorithm>

namespace orrery::network {

TransferId FifoNetwork::start(Bytes bytes, std::span<const topology::Hop> route,
                              engine::EventQueue& queue) {
  if (free_.empty()) {
    free_.push_back(static_cast<TransferId>(messages_.size()));
    messages_.emplace_back();
  }
  const TransferId id = free_.back();
  free_.pop_back();
  messages_[id] = {bytes, route, 0, queue.now()};
  step(id, queue);
  return id;
}

void FifoNetwork::step(TransferId id, engine::EventQueue& queue) {
  Message& message = messages_[id];
  if (message.hop == message.route.size()) {
    queue.push(queue.now(), kArrive, id);  // from a device to itself
    return;
  }
  const topology::Hop& hop = message.route[message.hop++];
  const Time held = message.bytes / hop.bandwidth;
  const Time start = links_[hop.link].take(queue.now(), held);
  busy_[hop.link] += held;
  message.last_byte = std::max(start + held, message.last_byte) + hop.latency;
  const bool last = message.hop == message.route.size();
  queue.push(last ? message.last_byte : start + hop.latency, last ? kArrive : kHop, id);
}

bool FifoNetwork::handle(const engine::EventQueue::Event& event, engine::EventQueue& queue) {
  if (event.kind == kHop) {
    step(event.subject, queue);
    return false;
  }
  free_.push_back(event.subject);
  return true;
}

}  // namespace orrery::network
