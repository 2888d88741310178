// SPDX-License-Identifier: Apache-2.0
/// Messages on a network model, for the tests of this folder.
#pragma once

#include <vector>

#include "engine/event_queue.h"
#include "machine/network/fifo.h"
#include "machine/topology/link_map.h"

namespace orrery::testing {

struct TimedMessage {
  std::int64_t source = 0;
  std::int64_t destination = 0;
  Bytes bytes{0};
  Time when{0};
};

/// Arrival of each message, in the order given.
template <class Network>
std::vector<Time> arrivals(Network& network, const topology::LinkMap& map,
                           const std::vector<TimedMessage>& messages) {
  constexpr std::uint32_t kStart = 0;
  engine::EventQueue queue;
  std::vector<std::vector<topology::Hop>> routes(messages.size());
  std::vector<std::size_t> message_of(messages.size());
  std::vector<Time> arrival(messages.size());
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    map.route(messages[i].source, messages[i].destination, routes[i]);
    queue.push(messages[i].when, kStart, i);
  }
  while (!queue.empty()) {
    const engine::EventQueue::Event event = queue.pop();
    if (event.kind == kStart) {
      const TimedMessage& message = messages[event.subject];
      network::TransferId id = 0;
      if constexpr (
          requires { network.start({}, routes[event.subject], queue); } &&
          !requires { network.start(Bytes(0), routes[event.subject], queue); }) {
        id = network.start({static_cast<std::int32_t>(message.source),
                            static_cast<std::int32_t>(message.destination), message.bytes},
                           routes[event.subject], queue);
      } else {
        id = network.start(message.bytes, routes[event.subject], queue);
      }
      message_of[id] = event.subject;
    } else if (network.handle(event, queue)) {
      arrival[message_of[event.subject]] = queue.now();
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  return arrival;
}

/// `bandwidth` is that of one link, whatever the kind.
inline topology::NetworkDimension dimension(topology::DimensionKind kind, std::int64_t size,
                                            double link_gbps, Time latency) {
  topology::NetworkDimension d;
  d.kind = kind;
  d.size = size;
  d.latency = latency;
  const auto links =
      static_cast<double>(kind == topology::DimensionKind::fully_connected        ? size - 1
                          : kind != topology::DimensionKind::switched && size > 2 ? 2
                                                                                  : 1);
  d.bandwidth = Bandwidth(link_gbps * 1e9 * links);
  return d;
}

}  // namespace orrery::testing
