// SPDX-License-Identifier: Apache-2.0
/// Flows of a host: their packets, and the turn in which these enter its ports.
#include <numeric>

#include "base/lists.h"
#include "machine/network/packets/fabric.h"

namespace orrery::packets {
namespace {

/// Returns the rate of all links that the paths begin with.
Bandwidth line_of(const Stream& stream, const Routes& routes) {
  std::vector<std::int32_t> first =
      mapped(stream.routes, [&](const std::uint32_t route) { return routes.at(route); });
  std::ranges::sort(first);
  const auto twice = std::ranges::unique(first);
  first.erase(twice.begin(), twice.end());
  return std::accumulate(
      first.begin(), first.end(), Bandwidth(0),
      [&](Bandwidth sum, std::int32_t number) { return sum + routes.link(number).bandwidth; });
}

void shuffle(Stream& stream) {
  for (std::size_t i = stream.order.size(); i > 1; --i) {
    stream.random = topology::mixed(stream.random);
    std::swap(stream.order[i - 1], stream.order[stream.random % i]);
  }
}

}  // namespace

void Fabric::prepare(std::uint32_t f, bool by_message) {
  Stream& stream = streams_[f];
  const std::int64_t payload = rules_.payload();
  const std::int64_t bytes = stream.bytes.value();
  stream.count =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, (bytes + payload - 1) / payload));
  if (rules_.is(network::Protocol::swift) && !by_message) {
    ++stream.count;  // as csg-htsim counts
  }
  const std::int64_t rest = bytes - (std::int64_t{stream.count} - 1) * payload;
  stream.last_wire = static_cast<std::uint32_t>(
      rules_.is(network::Protocol::eqds) ? rest + rules_.options().header.value() : rules_.wire());
  if (stream.hops.front() == 0) {
    return;
  }
  stream.nic = static_cast<std::uint32_t>(routes_.at(stream.routes.front()));
  stream.line = line_of(stream, routes_);
  stream.unsolicited = rules_.trims()                       ? rules_.window(stream.line)
                       : rules_.is(network::Protocol::roce) ? stream.count
                                                            : 0;
  stream.random = topology::mixed(rules_.options().seed ^ topology::mixed(f));
  stream.order.resize(stream.routes.size());
  stream.avoided.resize(stream.routes.size());
  std::iota(stream.order.begin(), stream.order.end(), 0U);
  shuffle(stream);
  for (std::uint16_t h = 0; h < stream.hops.front(); ++h) {
    const std::int32_t over = routes_.at(stream.routes.front() + h);
    stream.reverse += routes_.serialisation(rules_.options().header, over) +
                      routes_.link(over).latency +
                      (h > 0 ? rules_.options().switch_delay : Time(0));
  }
  if (!rules_.trims() && stream.back == kNone) {
    if (const auto back = routes_.lay_back(stream.routes.front(), stream.hops.front())) {
      stream.back = *back;
      stream.back_hops = stream.hops.front();
    }
  }
}

void Fabric::offer(std::uint32_t f) {
  Stream& stream = streams_[f];
  if (!stream.listed && stream.may_send()) {
    stream.listed = true;
    ports_[stream.nic].flows.push_back(f);
  }
  send_next(stream.nic);
}

void Fabric::take_from_host(std::uint32_t number) {
  Port& port = ports_[number];
  while (!port.flows.empty()) {
    port.turn = port.turn < port.flows.size() ? port.turn : 0;
    const std::uint32_t f = port.flows[port.turn];
    Stream& stream = streams_[f];
    if (!stream.may_send()) {
      stream.listed = false;
      port.flows.erase(port.flows.begin() + static_cast<std::ptrdiff_t>(port.turn));
      continue;
    }
    ++port.turn;
    // One that goes over another port of the host's makes no turn of this one.
    if (const std::uint32_t over = make_packet(f, stream); over != number) {
      send_next(over);
    } else {
      return;
    }
  }
}

std::uint32_t Fabric::make_packet(std::uint32_t f, Stream& stream) {
  std::uint32_t number = stream.fresh;
  bool asks = false;
  if (stream.unsolicited > 0 && stream.fresh < stream.count && stream.credit <= 0) {
    --stream.unsolicited;
    ++stream.fresh;
  } else {
    if (!stream.again.empty()) {
      number = stream.again.front();
      stream.again.pop_front();
      counted_.resent += rules_.is(network::Protocol::swift) ? 0 : 1;
      asks = true;
    } else {
      ++stream.fresh;
    }
    stream.credit -= wire_of(stream, number);
    asks = asks || stream.credit < 0;
  }
  const std::uint32_t id = allocate();
  const std::uint32_t path = next_path(stream);
  packets_[id] = {.flow = f,
                  .number = number,
                  .wire = wire_of(stream, number),
                  .route = stream.routes[path],
                  .hops = stream.hops[path],
                  .path = path,
                  .asks = asks || number + 1 == stream.count};
  ++counted_.packets;
  enqueue(id);
  return static_cast<std::uint32_t>(routes_.at(stream.routes[path]));
}

std::uint32_t Fabric::next_path(Stream& stream) {
  for (std::size_t tries = 0; tries <= stream.order.size(); ++tries) {
    if (stream.next_path == stream.order.size()) {
      stream.next_path = 0;
      shuffle(stream);
    }
    const std::uint32_t path = stream.order[stream.next_path++];
    if (!stream.avoided[path]) {
      return path;
    }
    stream.avoided[path] = false;  // skipped once
  }
  return stream.order.front();
}

}  // namespace orrery::packets
