// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/routers.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace orrery::flit {

Routers::Routers(const RouterGraph& graph, const RouterSettings& with, VcMask all_vcs)
    : settings(with),
      channels(static_cast<std::uint32_t>(graph.channels.size())),
      ports(channels + static_cast<std::uint32_t>(graph.nodes.size())),
      shift(static_cast<unsigned>(std::bit_width(static_cast<unsigned>(with.vcs - 1)))),
      has_speedup(with.internal_speedup > 1 || with.output_speedup > 1),
      needs_room(with.flow_control == FlowControl::cut_through || with.vc_busy_when_full),
      longest_delay(std::max({with.routing_delay, with.vc_alloc_delay, with.sw_alloc_delay})),
      in(ports),
      out(ports + graph.nodes.size(), OutPort{.free = all_vcs}),
      in_vcs(in.size() << shift),
      out_vcs(out.size() << shift, OutVc{.credits = with.buffer}) {
  ready.resize(ports);
  number_inputs(graph);
  for (std::uint32_t i = 0; i < channels; ++i) {
    const Channel& channel = graph.channels[i];
    set_out(i, channel.source, channel.latency);
    InPort& to = in[out[i].to];
    to.router = static_cast<std::uint32_t>(channel.target);
    to.credit_delay = 1 + channel.latency + with.credit_delay;
    longest_delay = std::max(longest_delay, to.credit_delay);
  }
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    OutPort& port = out[channels + i];
    set_out(channels + i, node.eject, node.latency);
    port.counts_credits = has_speedup || with.flow_control == FlowControl::cut_through ||
                          with.wait_for_tail_credit || with.vc_prioritize_empty ||
                          with.buffer < port.node_credit_delay;
    InPort& to = in[out[ports + i].to];
    to.router = static_cast<std::uint32_t>(node.inject);
    to.credit_delay = node.latency + 1;
  }
  first_outputs.resize(static_cast<std::size_t>(graph.routers), ports);
  for (std::uint32_t port = ports; port > 0; --port) {
    std::uint32_t& first = first_outputs[out[port - 1].router];
    const bool is_of_node = first >= channels && first < ports;
    if (port > channels || !graph.nodes_first || !is_of_node) {
      first = port - 1;
    }
  }
  if (has_speedup) {  // outputs hold as many flits as there are credits
    longest_delay += Cycle{with.vcs} * with.buffer;
  }
}

void Routers::set_out(std::uint32_t port, std::int32_t router, Cycle latency) {
  OutPort& of = out[port];
  of.router = static_cast<std::uint32_t>(router);
  of.delay = settings.sw_alloc_delay + settings.st_final_delay + latency;
  of.node_credit_delay = of.delay + 1 + latency + settings.credit_delay;
  longest_delay = std::max(longest_delay, of.node_credit_delay);
}

/// Input ports are numbered in the order of turns.
void Routers::number_inputs(const RouterGraph& graph) {
  struct Input {
    std::int32_t router;
    std::int32_t place;
    std::uint32_t from;
  };
  const bool is_grid = graph.shape == Shape::mesh || graph.shape == Shape::torus;
  std::vector<Input> inputs;
  for (std::uint32_t i = 0; i < channels; ++i) {
    inputs.push_back({graph.channels[i].target, graph.channels[i].place, i});
  }
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    inputs.push_back({graph.nodes[i].inject, graph.nodes_first ? -1 : INT32_MAX, ports + i});
  }
  std::stable_sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) {
    return std::tie(a.router, a.place) < std::tie(b.router, b.place);
  });
  std::uint32_t last_place = 0;
  for (std::uint32_t port = 0; port < inputs.size(); ++port) {
    const Input& input = inputs[port];
    in[port].from = input.from;
    out[input.from].to = port;
    const bool follows = port > 0 && inputs[port - 1].router == input.router;
    const bool of_node = input.from >= ports;
    const std::uint32_t place = !is_grid  ? (follows ? last_place + 1 : 0)
                                : of_node ? static_cast<std::uint32_t>(2 * graph.extents.size())
                                          : static_cast<std::uint32_t>(input.place);
    in[port].lane = place % static_cast<std::uint32_t>(settings.output_speedup);
    last_place = place;
  }
}

VcMask Routers::open_vcs(const Candidate& candidate, std::uint32_t flits) const {
  VcMask open = out[candidate.port].free & candidate.vcs;
  if (needs_room) {
    const auto room =
        static_cast<std::int32_t>(settings.flow_control == FlowControl::cut_through ? flits : 1);
    for_each_bit(open, [&](std::uint32_t v) {
      open &= ~(out_vcs[vc(candidate.port, v)].credits < room ? VcMask{1} << v : 0);
    });
  }
  return open;
}

SparseAllocator Routers::make_allocator(int inputs, int outputs, Arbiter arbiter) const {
  std::vector<std::uint32_t> of_inputs;
  std::vector<std::uint32_t> of_outputs;
  for (std::uint32_t port = 0; port < ports; ++port) {
    of_inputs.insert(of_inputs.end(), static_cast<std::size_t>(inputs), in[port].router);
    of_outputs.insert(of_outputs.end(), static_cast<std::size_t>(outputs), out[port].router);
  }
  return begun(of_inputs, of_outputs, static_cast<std::uint32_t>(outputs), arbiter);
}

SparseAllocator Routers::make_vc_allocator() const {
  std::vector<std::uint32_t> of_inputs(in_vcs.size(), SparseAllocator::kNone);
  std::vector<std::uint32_t> of_outputs(std::size_t{ports} << shift, SparseAllocator::kNone);
  for (std::uint32_t port = 0; port < ports; ++port) {
    for (std::uint32_t v = 0; v < static_cast<std::uint32_t>(settings.vcs); ++v) {
      of_inputs[vc(port, v)] = in[port].router;
      of_outputs[vc(port, v)] = out[port].router;
    }
  }
  return begun(of_inputs, of_outputs, 1U << shift, settings.vc_arbiter);
}

SparseAllocator Routers::begun(const std::vector<std::uint32_t>& of_inputs,
                               const std::vector<std::uint32_t>& of_outputs, std::uint32_t width,
                               Arbiter arbiter) const {
  SparseAllocator made;
  made.resize(of_inputs, of_outputs, arbiter);
  std::vector<std::uint32_t> first = first_outputs;
  for (std::uint32_t& output : first) {
    output = output < ports ? output * width : SparseAllocator::kNone;
  }
  made.begin_at(first);
  return made;
}

}  // namespace orrery::flit
