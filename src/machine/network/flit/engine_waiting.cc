// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

/// Output VCs to which a credit, and input VCs to which a flit is on its way.
Engine::InFlight Engine::on_their_way() const {
  InFlight coming{std::vector<bool>(out_vcs_.size()), std::vector<bool>(in_vcs_.size())};
  calendar_.for_each([&](const Calendar::Slot& slot) {
    for (const std::uint32_t vc : slot.credits) {
      coming.credits[vc] = true;
    }
    for (const Calendar::Flit& flit : slot.flits) {
      coming.flits[flit.where] = true;
    }
  });
  return coming;
}

/// Returns what a head without an output VC waits for; nothing if it need not.
std::vector<std::uint32_t> Engine::head_waits_for(std::uint32_t vc) const {
  const InVc& in = in_vcs_[vc];
  const Packet& packet = packets_[in.front];
  Candidates outputs;
  outputs.add(in.port, in.vcs);
  if (routing_.is_adaptive()) {
    Random unused(0);
    RouteState state = packet.route;
    const PacketKind kind = kinds_.empty() ? PacketKind{&routing_} : kinds_[packet.kind];
    kind.routing->next(state, in_[port_of(vc)].router, unused, outputs);
    for (Candidate& output : outputs.list) {
      output.vcs <<= kind.first_vc;
    }
  }
  std::vector<std::uint32_t> list;
  for (int i = 0; i < outputs.count; ++i) {
    const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
    if (output.port >= channels_ || open_vcs(output, packet.flits) != 0) {
      return {};
    }
    for (VcMask rest = output.vcs; rest != 0; rest &= rest - 1) {
      const std::uint32_t out =
          in_vc(output.port, static_cast<std::uint32_t>(std::countr_zero(rest)));
      // Held by a packet here, or without room for this one: its buffer downstream must empty.
      list.push_back(out_vcs_[out].owner != kNone ? out_vcs_[out].owner : downstream(out));
    }
  }
  return list;
}

std::vector<Waiting> Engine::waiting() const {
  const InFlight coming = on_their_way();
  std::vector<Waiting> list;
  for (std::uint32_t vc = 0; vc < in_vcs_.size(); ++vc) {
    const InVc& in = in_vcs_[vc];
    if (in.front == kNone || in.rests) {
      continue;
    }
    Waiting one{vc, {}};
    if (in.out == kNone) {
      one.for_ = head_waits_for(vc);
    } else if (in.count == 0) {  // for the flits behind, wherever they are
      const std::uint32_t before = upstream(vc);
      if (out_vcs_[before].owner != kNone && !coming.flits[vc]) {
        one.for_.push_back(out_vcs_[before].owner);
      }
    } else if (in.port < channels_ && out_vcs_[in.out].credits == 0 && !coming.credits[in.out]) {
      one.for_.push_back(downstream(in.out));
    }
    if (!one.for_.empty()) {
      list.push_back(std::move(one));
    }
  }
  return list;
}

std::string Engine::name_of_vc(std::uint32_t in_vc) const {
  const InPort& port = in_[port_of(in_vc)];
  const auto router = static_cast<std::int32_t>(port.router);
  const std::string from = port.from < channels_
                               ? "router " + graph_.router_name(graph_.channels[port.from].source)
                               : fmt::format("node {}", port.from - ports_);
  return fmt::format("router {} from {}, VC {}: {} flits", graph_.router_name(router), from,
                     vc_of(in_vc), in_vcs_[in_vc].count);
}

}  // namespace orrery::flit
