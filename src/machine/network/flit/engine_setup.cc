// SPDX-License-Identifier: Apache-2.0
#include <bit>

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
  sending_.resize(nodes);
  Cycle longest =
      std::max({settings.routing_delay, settings.vc_alloc_delay, settings.sw_alloc_delay});
  const auto set_out = [&](std::uint32_t port, Cycle latency) {
    OutPort& out = out_[port];
    out.free = routing_.all_vcs();
    out.delay = hop_delay_ + latency;
    out.node_credit_delay = out.delay + latency + settings_.credit_delay;
    longest = std::max(longest, out.node_credit_delay);
  };
  for (std::uint32_t i = 0; i < channels_; ++i) {
    const Channel& channel = graph.channels[i];
    set_out(i, channel.latency);
    in_[i].router = static_cast<std::uint32_t>(channel.target);
    in_[i].credit_delay = channel.latency + settings.credit_delay;
  }
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const Node& node = graph.nodes[i];
    OutPort& out = out_[channels_ + i];
    set_out(channels_ + i, node.latency);
    out.counts_credits = settings.flow_control == FlowControl::cut_through ||
                         settings.wait_for_tail_credit || settings.buffer < out.node_credit_delay;
    in_[channels_ + i].router = static_cast<std::uint32_t>(node.inject);
    in_[channels_ + i].credit_delay = node.latency + 1;
    sources_[i].delay = node.latency + 1;
    sources_[i].last_vc = static_cast<std::uint32_t>(settings.vcs - 1);
  }
  longest_delay_ = longest;
  calendar_.set_reach(std::max<Cycle>(longest, 1000));
  set_allocators();
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
