// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <tuple>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

Engine::Engine(const RouterGraph& graph, const Routing& routing, const RouterSettings& settings,
               std::uint64_t seed)
    : graph_(graph),
      routing_(routing),
      settings_(settings),
      random_(seed),
      channels_(static_cast<std::uint32_t>(graph.channels.size())),
      ports_(channels_ + static_cast<std::uint32_t>(graph.nodes.size())),
      shift_(static_cast<unsigned>(std::bit_width(static_cast<unsigned>(settings.vcs - 1)))) {
  has_speedup_ = settings.internal_speedup > 1;
  hop_delay_ = settings.sw_alloc_delay + settings.st_final_delay;
  const std::size_t nodes = graph.nodes.size();
  const std::size_t out_ports = ports_ + nodes;
  in_.resize(ports_);
  out_.resize(out_ports);
  in_vcs_.resize(std::size_t{ports_} << shift_);
  out_vcs_.resize(out_ports << shift_);
  for (OutVc& vc : out_vcs_) {
    vc.credits = settings.buffer;
  }
  sources_.resize(nodes);
  parked_.resize(ports_);
  ready_.resize(ports_);
  heads_.resize(in_vcs_.size());
  holding_.resize(ports_);
  sending_.resize(nodes);
  number_inputs();
  Cycle longest = set_ports();
  if (graph.nodes_first) {
    begin_with_nodes();
  }
  if (has_speedup_) {  // outputs hold as many flits as there are credits
    longest += Cycle{settings.vcs} * settings.buffer;
  }
  looks_ahead_ = settings.routing_delay == 0 && !routing.is_adaptive() && !routing.compares();
  orders_grants_ = looks_ahead_ && routing.draws_on_the_way();
  longest_delay_ = longest;
  calendar_.set_reach(std::max<Cycle>(longest, 1000));
  set_allocators();
}

/// Delays of ports; the longest of all.
Cycle Engine::set_ports() {
  Cycle longest =
      std::max({settings_.routing_delay, settings_.vc_alloc_delay, settings_.sw_alloc_delay});
  const auto set_out = [&](std::uint32_t port, Cycle latency) {
    OutPort& out = out_[port];
    out.free = routing_.all_vcs();
    out.delay = hop_delay_ + latency;
    out.node_credit_delay = out.delay + 1 + latency + settings_.credit_delay;
    longest = std::max(longest, out.node_credit_delay);
  };
  for (std::uint32_t i = 0; i < channels_; ++i) {
    const Channel& channel = graph_.channels[i];
    set_out(i, channel.latency);
    InPort& in = in_[out_[i].to];
    in.router = static_cast<std::uint32_t>(channel.target);
    in.credit_delay = 1 + channel.latency + settings_.credit_delay;
    longest = std::max(longest, in.credit_delay);
  }
  for (std::uint32_t i = 0; i < sources_.size(); ++i) {
    const Node& node = graph_.nodes[i];
    OutPort& out = out_[channels_ + i];
    set_out(channels_ + i, node.latency);
    out.counts_credits = has_speedup_ || settings_.flow_control == FlowControl::cut_through ||
                         settings_.wait_for_tail_credit || settings_.buffer < out.node_credit_delay;
    InPort& in = in_[out_[ports_ + i].to];
    in.router = static_cast<std::uint32_t>(node.inject);
    in.credit_delay = node.latency + 1;
    sources_[i].delay = node.latency + 1;
    sources_[i].last_vc = static_cast<std::uint32_t>(settings_.vcs - 1);
  }
  return longest;
}

/// Input ports are numbered by router, there by the places of channels, then nodes: turns go by
/// numbers.
void Engine::number_inputs() {
  struct Input {
    std::int32_t router;
    std::int32_t place;
    std::uint32_t from;
  };
  std::vector<Input> inputs;
  for (std::uint32_t i = 0; i < channels_; ++i) {
    inputs.push_back({graph_.channels[i].target, graph_.channels[i].place, i});
  }
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    inputs.push_back({graph_.nodes[i].inject, graph_.nodes_first ? -1 : INT32_MAX, ports_ + i});
  }
  std::stable_sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) {
    return std::tie(a.router, a.place) < std::tie(b.router, b.place);
  });
  for (std::uint32_t port = 0; port < inputs.size(); ++port) {
    in_[port].from = inputs[port].from;
    out_[inputs[port].from].to = port;
  }
}

/// The first turn of an input is that of the first node of its router.
void Engine::begin_with_nodes() {
  std::vector<std::uint32_t> first(static_cast<std::size_t>(graph_.routers), 0);
  for (std::uint32_t i = static_cast<std::uint32_t>(graph_.nodes.size()); i > 0; --i) {
    first[static_cast<std::size_t>(graph_.nodes[i - 1].eject)] = channels_ + i - 1;
  }
  for (InPort& in : in_) {
    in.pointer = first[in.router];
  }
}

/// Requires that the VCs are there.
void Engine::set_allocators() {
  const auto is_plain = [&](Allocator allocator) {
    return allocator == Allocator::separable_input_first && settings_.alloc_iters == 1;
  };
  plain_vc_ = is_plain(settings_.vc_allocator);
  plain_switch_ = is_plain(settings_.sw_allocator);
  input_vcs_.resize(static_cast<std::size_t>(settings_.input_speedup));
  for (std::size_t vc = 0; vc < static_cast<std::size_t>(settings_.vcs); ++vc) {
    input_vcs_[vc % input_vcs_.size()] |= VcMask{1} << vc;
  }
  if (!plain_vc_) {
    slow_vc_.resize(routers_of_inputs(std::size_t{1} << shift_),
                    routers_of_outputs(std::size_t{1} << shift_));
  }
  if (!plain_switch_) {
    slow_switch_.resize(routers_of_inputs(input_vcs_.size()), routers_of_outputs(1));
  }
}

/// Of each of `each` inputs that a port has.
std::vector<std::uint32_t> Engine::routers_of_inputs(std::size_t each) const {
  std::vector<std::uint32_t> routers;
  for (const InPort& port : in_) {
    routers.insert(routers.end(), each, port.router);
  }
  return routers;
}

/// Of each of `each` outputs that a port of a router has.
std::vector<std::uint32_t> Engine::routers_of_outputs(std::size_t each) const {
  std::vector<std::uint32_t> routers;
  for (const Channel& channel : graph_.channels) {
    routers.insert(routers.end(), each, static_cast<std::uint32_t>(channel.source));
  }
  for (const Node& node : graph_.nodes) {
    routers.insert(routers.end(), each, static_cast<std::uint32_t>(node.eject));
  }
  return routers;
}

}  // namespace orrery::flit
