// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/packet_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "machine/network/packets/packet_network.h"
#include "machine/topology/steps.h"

namespace orrery::packets {
namespace {

constexpr std::size_t kMostLinksOfPackets = std::size_t{1} << 22;

/// Several routes by hash of the message's packets.
std::int64_t paths_of(const topology::LinkMap& map, const network::PacketOptions& options,
                      topology::Routing routing) {
  const bool hashes = routing == topology::Routing::ecmp;
  const bool many = map.sprays() || (hashes && (trims(options.protocol) || options.paths > 1));
  constexpr std::int64_t kUsualPaths = 64;
  return !many ? 1 : options.paths > 0 ? options.paths : kUsualPaths;
}

}  // namespace

PacketLinks::PacketLinks(const topology::LinkMap& map, const network::PacketOptions& options)
    : map_(map), options_(options), graph_(map.graph()) {
  if (map.links() > kMostLinksOfPackets) {
    own_ = std::make_unique<topology::LinkGraph>();
    graph_ = own_.get();
  } else if (graph_ == nullptr) {
    read_dimensions();
  } else {
    paths_ = paths_of(map, options_, map.routing());
    if (paths_ > 1) {
      by_hash_ =
          std::make_unique<topology::Router>(*graph_, topology::Routing::ecmp, options_.seed);
    }
  }
  for (const topology::GraphLink& link : graph_->links) {
    latency_.push_back(link.latency);
  }
  options_.steady = 0;
  network_ = std::make_unique<PacketNetwork>(*graph_, no_flows_, options_);
}

PacketLinks::PacketLinks(PacketLinks&&) noexcept = default;
PacketLinks::~PacketLinks() = default;

/// Dimensions as a graph: devices, and one switch for each dimension, whose cables join them. Links
/// between a device's ports and what shares them lead nowhere: no cable leads back.
void PacketLinks::read_dimensions() {
  own_ = std::make_unique<topology::LinkGraph>();
  own_->hosts = static_cast<std::int32_t>(map_.devices());
  own_->links.resize(map_.links(), {.source = -1, .target = -1, .bandwidth = Bandwidth(1)});
  topology::for_each_step(map_, [&](std::int64_t from, std::int64_t to, int dimension, bool,
                                    const std::vector<topology::Hop>& hops) {
    const std::int32_t middle = own_->hosts + dimension;
    for (std::size_t h = 0; h < hops.size(); ++h) {
      topology::GraphLink& link = own_->links[hops[h].link];
      link.bandwidth = std::max(link.bandwidth, hops[h].bandwidth);
      link.latency = hops[h].latency;
      if (hops.size() <= 2) {
        link.source = h == 0 ? static_cast<std::int32_t>(from) : middle;
        link.target = h + 1 == hops.size() ? static_cast<std::int32_t>(to) : middle;
      }
    }
  });
  graph_ = own_.get();
  own_->vertices.resize(static_cast<std::size_t>(own_->hosts) + map_.dimensions().size());
}

Result<void> PacketLinks::check() const {
  if (map_.links() > kMostLinksOfPackets) {
    return fail(fmt::format("network packet: {} links, more than the {} that it simulates",
                            map_.links(), kMostLinksOfPackets));
  }
  const auto pipe = std::ranges::find_if(graph_->links, &topology::GraphLink::pipe);
  if (pipe != graph_->links.end()) {
    const auto number = static_cast<std::size_t>(pipe - graph_->links.begin());
    return fail(Error(Mistake{{},
                              "topology",
                              graph_->name,
                              fmt::format("links that packets share; {} gives every message all "
                                          "of it",
                                          graph_->link_name(number))}));
  }
  return {};
}

std::vector<topology::Hop> PacketLinks::back(const topology::FlowEnds& ends) const {
  std::vector<topology::Hop> hops;
  if (by_hash_) {
    const auto pair = static_cast<std::uint64_t>(ends.source) << 32U |
                      static_cast<std::uint64_t>(static_cast<std::uint32_t>(ends.target));
    by_hash_->route(ends.target, ends.source, topology::mixed(~pair), hops);
  } else {
    map_.route(ends.target, ends.source, hops);
  }
  return hops;
}

void PacketLinks::lay_by_hash(const topology::FlowEnds& ends, double efficiency, Course& course) {
  const auto pair = static_cast<std::uint64_t>(ends.source) << 32U |
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(ends.target));
  std::vector<topology::Hop> hops;
  for (std::int64_t path = 0; path < paths_; ++path) {
    hops.clear();
    by_hash_->route(ends.source, ends.target,
                    topology::mixed(pair) + static_cast<std::uint64_t>(path), hops);
    for (topology::Hop& hop : hops) {
      hop.bandwidth = efficiency == 1 ? hop.bandwidth : hop.bandwidth * efficiency;
    }
    course.routes.push_back(network_->lay(hops));
    course.hops.push_back(static_cast<std::uint16_t>(hops.size()));
  }
}

PacketLinks::LaidRoute PacketLinks::lay_route(const topology::FlowEnds& ends,
                                              std::span<const topology::Hop> route) {
  LaidRoute laid;
  laid.hops.assign(route.begin(), route.end());
  laid.course = std::make_unique<Course>();
  Time stated{0};
  Time latencies{0};
  double seconds = 0;  // a byte's on the first link, or on the first links of a sprayed route
  for (const topology::Hop& hop : route) {
    const topology::GraphLink& link = graph_->links[hop.link];
    stated += hop.latency;
    latencies += latency_[hop.link];
    if (&hop == route.data() || (map_.sprays() && link.source == ends.source)) {
      seconds += link.bandwidth.value() / hop.bandwidth.value();
    }
  }
  if (by_hash_) {
    lay_by_hash(ends, 1 / seconds, *laid.course);
    // A sprayed route counts the latencies of the first of its routes.
    latencies = Time(0);
    for (std::uint16_t h = 0; h < laid.course->hops.front(); ++h) {
      latencies += latency_[static_cast<std::size_t>(
          network_->routes().at(laid.course->routes.front() + h))];
    }
  } else {
    laid.course->routes.push_back(network_->lay(route));
    laid.course->hops.push_back(static_cast<std::uint16_t>(route.size()));
  }
  laid.links = laid.course->hops.front();
  laid.after = std::max(Time(0), stated - latencies);
  if (!trims(options_.protocol)) {
    std::vector<topology::Hop> hops = back(ends);
    for (topology::Hop& hop : hops) {
      hop.bandwidth = graph_->links[hop.link].bandwidth;
    }
    laid.course->back = network_->lay(hops);
    laid.course->back_hops = static_cast<std::uint16_t>(hops.size());
  }
  return laid;
}

const PacketLinks::LaidRoute& PacketLinks::laid_route(const topology::FlowEnds& ends,
                                                      std::span<const topology::Hop> route) {
  const auto known = known_.find(route.data());
  if (known != known_.end() && std::ranges::equal(route, routes_[known->second].hops)) {
    return routes_[known->second];
  }
  routes_.push_back(lay_route(ends, route));
  known_[route.data()] = static_cast<std::uint32_t>(routes_.size() - 1);
  return routes_.back();
}

network::TransferId PacketLinks::new_id() {
  if (free_.empty()) {
    return ids_++;
  }
  const network::TransferId id = free_.back();
  free_.pop_back();
  return id;
}

network::TransferId PacketLinks::start(const topology::FlowEnds& message,
                                       std::span<const topology::Hop> route,
                                       engine::EventQueue& queue) {
  const network::TransferId id = new_id();
  if (route.empty()) {
    queue.push(queue.now(), kArrive, id);
    return id;
  }
  const LaidRoute& laid = laid_route(message, route);
  const std::uint32_t number =
      network_->send(queue.now(), message.bytes, message.target, *laid.course);
  in_flight_[number] = {id, laid.after};
  passed_ += passes(message.bytes, laid.links);
  return id;
}

bool PacketLinks::handle(const engine::EventQueue::Event& event, engine::EventQueue& /*queue*/) {
  free_.push_back(event.subject);
  return true;
}

void PacketLinks::settle(engine::EventQueue& queue) {
  while (!in_flight_.empty()) {
    const Time until = queue.empty() ? Time::max() : queue.next_time();
    const std::optional<std::uint32_t> whole = network_->advance(until);
    if (!whole) {
      return;
    }
    const auto sent = in_flight_.find(*whole);
    queue.push(network_->clock() + sent->second.after, kArrive, sent->second.id);
    in_flight_.erase(sent);
  }
}

double PacketLinks::passes(Bytes bytes, std::size_t links) const {
  const std::int64_t payload = network_->rules().payload();
  const std::int64_t packets = std::max<std::int64_t>(1, (bytes.value() + payload - 1) / payload);
  return static_cast<double>(packets) * static_cast<double>(links);
}

std::uint64_t PacketLinks::events() const {
  return network_->events();
}

std::optional<std::string> PacketLinks::stall() const {
  if (in_flight_.empty()) {
    return std::nullopt;
  }
  return fmt::format(
      "{} messages never arrive on network packet: pauses of {} wait for each other around a ring "
      "of links (a protocol that trims or drops, such as eqds, does not pause)",
      in_flight_.size(), name_of(options_.protocol));
}

}  // namespace orrery::packets
