// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <tuple>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

Engine::Engine(const RouterGraph& graph, const Routing& routing, const RouterSettings& settings,
               std::uint64_t seed, const Classes& classes)
    : graph_(graph),
      routing_(routing),
      settings_(settings),
      random_(seed),
      kinds_(classes.kinds),
      class_count_(classes.count),
      counts_flit_latency_(classes.counts_flit_latency),
      last_class_(graph.nodes.size()),
      channels_(static_cast<std::uint32_t>(graph.channels.size())),
      ports_(channels_ + static_cast<std::uint32_t>(graph.nodes.size())),
      shift_(static_cast<unsigned>(std::bit_width(static_cast<unsigned>(settings.vcs - 1)))) {
  has_speedup_ = settings.internal_speedup > 1 || settings.output_speedup > 1;
  needs_room_ = settings.flow_control == FlowControl::cut_through || settings.vc_busy_when_full;
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
  sources_.resize(nodes * class_count_);
  counts_.resize(class_count_);
  parked_.resize(ports_);
  ready_.resize(ports_);
  heads_.resize(in_vcs_.size());
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
  draws_at_routers_ =
      settings.routing_delay > 0 && (routing.draws_en_route() || routing.draws_at_start());
  draws_first_vc_ = routing.draws_first_vc();
  orders_grants_ = (looks_ahead_ && routing.draws_en_route()) || draws_at_routers_ ||
                   settings.output_speedup > 1;
  parks_ = !routing.is_adaptive() &&  // which may find room at another port any time
           (settings.speculation == Speculation::none || settings.spec_check_vc);
  if (const std::size_t ports = static_cast<std::size_t>(graph.routers) * nodes;
      routing.is_fixed() && kinds_.empty() && ports <= kMostNextPorts) {
    next_port_.assign(ports, kNone);
  }
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
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    OutPort& out = out_[channels_ + i];
    set_out(channels_ + i, node.latency);
    out.counts_credits = has_speedup_ || settings_.flow_control == FlowControl::cut_through ||
                         settings_.wait_for_tail_credit || settings_.vc_prioritize_empty ||
                         settings_.buffer < out.node_credit_delay;
    InPort& in = in_[out_[ports_ + i].to];
    in.router = static_cast<std::uint32_t>(node.inject);
    in.credit_delay = node.latency + 1;
    out_[ports_ + i].free = routing_.all_vcs();
    for (std::uint32_t of = 0; of < class_count_; ++of) {
      sources_[i * class_count_ + of].delay = node.latency + 1;
    }
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
  const bool is_grid = graph_.shape == Shape::mesh || graph_.shape == Shape::torus;
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
    const Input& input = inputs[port];
    in_[port].from = input.from;
    out_[input.from].to = port;
    const bool follows = port > 0 && inputs[port - 1].router == input.router;
    const bool of_node = input.from >= ports_;
    in_[port].place = !is_grid  ? (follows ? in_[port - 1].place + 1 : 0)
                      : of_node ? static_cast<std::uint32_t>(2 * graph_.extents.size())
                                : static_cast<std::uint32_t>(input.place);
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
  const RouterSettings& with = settings_;
  const auto is_plain = [&](Allocator allocator, Arbiter arbiter) {
    return allocator == Allocator::separable_input_first && with.alloc_iters == 1 &&
           arbiter == Arbiter::round_robin && with.priority == Priority::none;
  };
  plain_vc_ = is_plain(with.vc_allocator, with.vc_arbiter) && !with.vc_prioritize_empty;
  plain_switch_ = is_plain(with.sw_allocator, with.sw_arbiter) && with.input_speedup == 1 &&
                  with.output_speedup == 1 && with.speculation == Speculation::none &&
                  !with.hold_switch_for_packet && !with.vc_busy_when_full;
  if (!plain_vc_) {
    slow_vc_.resize(routers_of_inputs(std::size_t{1} << shift_),
                    routers_of_outputs(std::size_t{1} << shift_), with.vc_arbiter);
  }
  if (plain_switch_) {
    return;
  }
  const auto inputs = static_cast<std::uint32_t>(with.input_speedup);
  const auto outputs = static_cast<std::size_t>(with.output_speedup);
  switch_inputs_.resize(std::size_t{ports_} * inputs);
  for (std::uint32_t i = 0; i < switch_inputs_.size(); ++i) {
    switch_inputs_[i].vc = i % inputs;
  }
  held_outputs_.resize(ports_ * outputs);
  slow_switch_.resize(routers_of_inputs(inputs), routers_of_outputs(outputs), with.sw_arbiter);
  if (with.speculation == Speculation::separate) {
    spec_switch_.resize(routers_of_inputs(inputs), routers_of_outputs(outputs), with.sw_arbiter);
  }
}

/// Returns the router of each of `each` inputs that a port has.
std::vector<std::uint32_t> Engine::routers_of_inputs(std::size_t each) const {
  std::vector<std::uint32_t> routers;
  for (const InPort& port : in_) {
    routers.insert(routers.end(), each, port.router);
  }
  return routers;
}

/// Returns the router of each of `each` outputs that a port of a router has.
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
