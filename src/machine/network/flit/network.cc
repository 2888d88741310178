// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/collect.h"
#include "base/format.h"
#include "machine/network/flit/link_order.h"
#include "machine/topology/steps.h"

namespace orrery::flit {
namespace {

constexpr std::size_t kMostLinks = std::size_t{1} << 22;
constexpr std::int64_t kShares = 4;  // packets of room beyond a round trip, for the closed form

Interval interval_of(Bytes flit, Bandwidth bandwidth, Time cycle) {
  const double cycles = static_cast<double>(flit.value()) / bandwidth.value() *
                        kPicosecondsPerSecond / static_cast<double>(cycle.value());
  return std::max(kEveryCycle, static_cast<Interval>(std::llround(cycles * kEveryCycle)));
}

/// Returns what flits cannot do on a network of links; nothing: they can, or there is none.
std::optional<Mistake> check_graph(const topology::LinkMap& map) {
  constexpr std::int64_t kMostDevicesOnGraph = 2048;  // every route of a pair is looked at
  const topology::LinkGraph* graph = map.graph();
  if (graph == nullptr) {
    return std::nullopt;
  }
  if (map.sprays()) {
    return Mistake{
        {}, "topology.routing", "spray", "one way per message for flits: ecmp, shortest"};
  }
  if (map.devices() > kMostDevicesOnGraph) {
    return Mistake{
        {},
        "topology",
        graph->name,
        fmt::format("at most {} devices for flits, not {}", kMostDevicesOnGraph, map.devices())};
  }
  const auto pipe = std::ranges::find_if(graph->links, &topology::GraphLink::pipe);
  if (pipe != graph->links.end()) {
    return Mistake{
        {},
        "topology",
        graph->name,
        fmt::format("links that flits share; {} gives every message all of it",
                    graph->link_name(static_cast<std::size_t>(pipe - graph->links.begin())))};
  }
  return std::nullopt;
}

Cycle wire_of(Interval interval) {
  return (interval + kEveryCycle - 1) / kEveryCycle - 1;
}

}  // namespace

FlitNetwork::FlitNetwork(const topology::LinkMap& map, const FabricSettings& settings,
                         bool shortcuts)
    : map_(map), settings_(settings), shortcuts_(shortcuts), routing_(graph_, 1, candidates_) {
  if (map.links() <= kMostLinks) {
    read_links();
    build_graph();
    routing_ = Routing(graph_, router_.vcs, candidates_);
  }
}

/// Latencies, order and ends of links; the clock; the classes that routes need.
void FlitNetwork::read_links() {
  latency_.assign(map_.links(), Time(0));
  order_.assign(map_.links(), -1);
  sender_.assign(map_.links(), 0);
  receiver_.assign(map_.links(), 0);
  if (map_.graph() == nullptr) {
    read_dimensions();
  } else if (!check_graph(map_)) {
    read_graph(*map_.graph());
  }
  cycle_ = settings_.cycle;
  if (cycle_ <= Time(0)) {
    cycle_ = Time(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(settings_.flit.value()) /
                                     std::max(fastest_, 1.0) * kPicosecondsPerSecond)));
  }
  by_link_ = by_link_ || switches_only_ || settings_.ports == Ports::link;
}

void FlitNetwork::read_graph(const topology::LinkGraph& graph) {
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    const topology::GraphLink& of = graph.links[link];
    fastest_ = std::max(fastest_, of.bandwidth.value());
    latency_[link] = of.latency;
    sender_[link] = of.source;
    receiver_[link] = of.target;
    by_link_ = by_link_ || of.source < 0 || of.joint;
  }
  LinkOrder order = order_links(map_.links(), [&](const auto& visit) {
    std::vector<topology::Hop> hops;
    for (std::int64_t from = 0; from < map_.devices(); ++from) {
      for (std::int64_t to = 0; to < map_.devices(); ++to) {
        hops.clear();
        map_.route(from, to, hops);
        visit(hops);
      }
    }
  });
  order_ = std::move(order.place);
  classes_ = order.classes;
}

void FlitNetwork::read_dimensions() {
  topology::for_each_step(map_, [&](std::int64_t from, std::int64_t to, int d, bool forward,
                                    const std::vector<topology::Hop>& hops) {
    const topology::NetworkDimension& shape = map_.dimensions()[static_cast<std::size_t>(d)];
    const std::int64_t x = map_.coordinate(from, d);
    const std::int64_t place = forward ? x : shape.size - 1 - x;
    for (std::size_t h = 0; h < hops.size(); ++h) {
      const topology::LinkId link = hops[h].link;
      fastest_ = std::max(fastest_, hops[h].bandwidth.value() / shape.send_efficiency);
      latency_[link] = hops[h].latency;
      if (order_[link] < 0) {
        const bool line = shape.kind != topology::DimensionKind::switched &&
                          shape.kind != topology::DimensionKind::fully_connected;
        order_[link] = ((2 * d + (forward ? 0 : 1)) * map_.devices() + (line ? place : 0)) * 8 +
                       static_cast<std::int64_t>(h);
      }
      sender_[link] = from;
      receiver_[link] = to;
    }
  });
  switches_only_ = std::all_of(
      map_.dimensions().begin(), map_.dimensions().end(), [](const topology::NetworkDimension& d) {
        return d.size < 2 || (d.kind == topology::DimensionKind::switched && d.nic.empty() &&
                              d.through.empty() && d.node_bandwidth <= Bandwidth(0));
      });
  classes_ = switches_only_ ? 1 : classes_needed();
}

/// The longest routes of one line of each dimension; other lines have the same order of links.
int FlitNetwork::classes_needed() const {
  std::int64_t descents = 0;
  bool shares = false;
  for (int d = 0; d < static_cast<int>(map_.dimensions().size()); ++d) {
    const topology::NetworkDimension& shape = map_.dimensions()[static_cast<std::size_t>(d)];
    shares |= map_.has_port(d) || map_.through(d) >= 0;
    std::int64_t most = 0;
    const auto count = [&](std::int64_t from, std::int64_t to) {
      std::vector<topology::Hop> hops;
      map_.route(from * map_.stride(d), to * map_.stride(d), hops);
      std::int64_t found = 0;
      for (std::size_t h = 1; h < hops.size(); ++h) {
        found += order_[hops[h].link] <= order_[hops[h - 1].link] ? 1 : 0;
      }
      most = std::max(most, found);
    };
    const std::int64_t n = shape.size;
    for (std::int64_t x = 0; n > 1 && x < n; ++x) {
      if (shape.kind == topology::DimensionKind::mesh) {
        count(x, x == 0 ? n - 1 : 0);
      } else {
        count(x, (x + n / 2) % n);
        count(x, (x + n - (n - 1) / 2) % n);
      }
    }
    descents += most;
  }
  const auto turns = static_cast<std::int64_t>(map_.dimensions().size()) - 1;
  return static_cast<int>(std::min<std::int64_t>(1 + descents + (shares ? turns : 0), 1000));
}

Result<void> FlitNetwork::check() const {
  if (map_.links() > kMostLinks) {
    return fail(fmt::format("network flit: {} links, more than the {} that it simulates",
                            map_.links(), kMostLinks));
  }
  if (auto wrong = check_graph(map_)) {
    return fail(Error(std::move(*wrong)));
  }
  Error mistakes;
  const std::int64_t flits = packet_flits(settings_.packet, settings_.flit);
  if (classes_ * settings_.vcs > kMostVcs) {
    mistakes.add({"flit.vcs",
                  {},
                  exact_text(settings_.vcs),
                  fmt::format("at most {}: ways through this network need {} classes of virtual "
                              "channels to be free of deadlock, {} in all",
                              kMostVcs / classes_, classes_, kMostVcs)});
  }
  if (settings_.buffer > 0 && settings_.buffer < flits) {
    mistakes.add({"flit.buffer",
                  {},
                  exact_text(settings_.buffer),
                  fmt::format("at least the {} flits of a packet", flits)});
  }
  if (router_.buffer > kMostBuffer) {
    mistakes.add({"flit.cycle",
                  {},
                  exact_text(cycle_),
                  fmt::format("a longer cycle: the longest link holds {} flits", router_.buffer)});
  }
  return or_mistakes(std::move(mistakes));
}

void FlitNetwork::build_graph() {
  graph_.name = "links";
  graph_.routers = 1;  // ports are told apart by their links; nobody asks for routers
  const auto links = static_cast<std::int32_t>(map_.links());
  Cycle longest = 1;
  const auto cycles = [&](topology::LinkId link) {
    const Time latency = latency_[link];
    const Cycle count = std::max<Cycle>(1, (latency.value() + cycle_.value() / 2) / cycle_.value());
    longest = std::max(longest, count);
    return count;
  };
  for (std::int32_t link = 0; link < links; ++link) {
    const Cycle latency = order_[static_cast<std::size_t>(link)] < 0
                              ? 1
                              : cycles(static_cast<topology::LinkId>(link));
    if (switches_only_) {
      graph_.nodes.push_back({0, 0, latency});
    } else {
      graph_.channels.push_back({0, 0, latency});
      graph_.nodes.push_back({0, 0, 1});
    }
  }
  router_ = {.vcs = std::clamp(classes_ * settings_.vcs, 1, kMostVcs),
             .routing_delay = settings_.routing_delay,
             .credit_delay = settings_.credit_delay,
             .vc_allocator = settings_.vc_allocator,
             .sw_allocator = settings_.sw_allocator,
             .flow_control = settings_.flow_control};
  const std::int64_t packet = packet_flits(settings_.packet, settings_.flit);
  const std::int64_t round_trip = 2 * longest + router_.credit_delay + router_.routing_delay + 8;
  const std::int64_t room = round_trip + kShares * packet;
  router_.buffer = static_cast<int>(
      settings_.buffer > 0 ? settings_.buffer : std::min<std::int64_t>(room, kMostBuffer + 1));
  has_closed_form_ = settings_.vcs >= 2 && router_.buffer >= room;
  waiting_.resize(graph_.nodes.size());
  busy_until_.resize(graph_.channels.size() + 2 * graph_.nodes.size());
}

FlitNetwork::LaidRoute FlitNetwork::lay_route(std::span<const topology::Hop> route) {
  LaidRoute laid;
  laid.hops.assign(route.begin(), route.end());
  laid.first = static_cast<std::uint32_t>(candidates_.size());
  const auto channels = static_cast<std::uint32_t>(graph_.channels.size());
  const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
  Time stated{0};
  Time latencies{0};
  for (const topology::Hop& hop : route) {
    const Interval interval = interval_of(settings_.flit, hop.bandwidth, cycle_);
    laid.is_even &= interval == interval_of(settings_.flit, route.front().bandwidth, cycle_);
    laid.interval = std::max(laid.interval, interval);
    stated += hop.latency;
    latencies += latency_[hop.link];
  }
  laid.after = std::max(Time(0), stated - latencies);
  const topology::LinkId first = route.front().link;
  const topology::LinkId last = route.back().link;
  laid.source = by_link_ ? first : static_cast<std::uint32_t>(sender_[first]);
  laid.target = by_link_ ? last : static_cast<std::uint32_t>(receiver_[last]);
  const VcMask all = (VcMask{1} << static_cast<unsigned>(settings_.vcs)) - 1;
  unsigned shift = 0;
  for (std::size_t h = 0; !switches_only_ && h < route.size(); ++h) {
    const topology::LinkId link = route[h].link;
    shift += h > 0 && order_[link] <= order_[route[h - 1].link]
                 ? static_cast<unsigned>(settings_.vcs)
                 : 0;
    const Interval interval = interval_of(settings_.flit, route[h].bandwidth, cycle_);
    candidates_.push_back({.port = link, .vcs = all << shift, .interval = interval});
    laid.ports.push_back(link);
    laid.links += graph_.channels[link].latency + wire_of(interval);
  }
  laid.wire =
      switches_only_ ? wire_of(interval_of(settings_.flit, route.front().bandwidth, cycle_)) : 0;
  const Interval out = interval_of(settings_.flit, route.back().bandwidth, cycle_);
  candidates_.push_back(
      {.port = channels + laid.target, .vcs = routing_.all_vcs(), .interval = out});
  laid.ports.push_back(channels + laid.target);
  laid.ports.push_back(channels + nodes + laid.source);
  laid.links += graph_.nodes[laid.source].latency + graph_.nodes[laid.target].latency + laid.wire +
                wire_of(out);
  laid.routers = static_cast<std::int64_t>(laid.ports.size()) - 1;
  return laid;
}

std::uint32_t FlitNetwork::number_of(std::span<const topology::Hop> route) {
  const auto known = known_.find(route.data());
  if (known != known_.end() && std::ranges::equal(route, routes_[known->second].hops)) {
    return known->second;
  }
  routes_.push_back(lay_route(route));
  return known_[route.data()] = static_cast<std::uint32_t>(routes_.size() - 1);
}

}  // namespace orrery::flit
