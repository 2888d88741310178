// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

/// Returns what a head without an output VC waits for; nothing if it need not.
std::vector<std::uint32_t> Engine::head_waits_for(std::uint32_t vc) const {
  Candidates outputs;
  routes_.outputs_of(vc, outputs);
  std::vector<std::uint32_t> list;
  for (int i = 0; i < outputs.count; ++i) {
    const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
    if (output.port >= routers_.channels ||
        routers_.open_vcs(output, packets_[routers_.in_vcs[vc].front].flits) != 0) {
      return {};
    }
    for_each_bit(output.vcs, [&](std::uint32_t v) {
      const std::uint32_t out = routers_.vc(output.port, v);
      // Held by a packet here, or without room for this one: its buffer downstream must empty.
      const std::uint32_t owner = routers_.out_vcs[out].owner;
      list.push_back(owner != kNone ? owner : routers_.downstream(out));
    });
  }
  return list;
}

std::vector<Waiting> Engine::waiting() const {
  std::vector<bool> credit_comes(routers_.out_vcs.size());
  std::vector<bool> flit_comes(routers_.in_vcs.size());
  calendar_.for_each([&](const Calendar::Slot& slot) {
    for (const std::uint32_t vc : slot.credits) {
      credit_comes[vc] = true;
    }
    for (const Calendar::Flit& flit : slot.flits) {
      flit_comes[flit.where] = true;
    }
  });
  std::vector<Waiting> list;
  for (std::uint32_t vc = 0; vc < routers_.in_vcs.size(); ++vc) {
    const InVc& in = routers_.in_vcs[vc];
    if (in.front == kNone || in.rests) {
      continue;
    }
    Waiting one{vc, {}};
    if (in.out == kNone) {
      one.for_ = head_waits_for(vc);
    } else if (in.count == 0) {  // for the flits behind, wherever they are
      const std::uint32_t owner = routers_.out_vcs[routers_.upstream(vc)].owner;
      if (owner != kNone && !flit_comes[vc]) {
        one.for_.push_back(owner);
      }
    } else if (in.port < routers_.channels && routers_.out_vcs[in.out].credits == 0 &&
               !credit_comes[in.out]) {
      one.for_.push_back(routers_.downstream(in.out));
    }
    if (!one.for_.empty()) {
      list.push_back(std::move(one));
    }
  }
  return list;
}

std::string Engine::name_of_vc(std::uint32_t in_vc) const {
  const InPort& port = routers_.in[routers_.port_of(in_vc)];
  const auto router = static_cast<std::int32_t>(port.router);
  const std::string from = port.from < routers_.channels
                               ? "router " + graph_.router_name(graph_.channels[port.from].source)
                               : fmt::format("node {}", port.from - routers_.ports);
  return fmt::format("router {} from {}, VC {}: {} flits", graph_.router_name(router), from,
                     routers_.vc_of(in_vc), routers_.in_vcs[in_vc].count);
}

}  // namespace orrery::flit
