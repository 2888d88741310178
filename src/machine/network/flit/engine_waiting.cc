// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

std::vector<Waiting> Engine::waiting() const {
  std::vector<Waiting> list;
  Random unused(0);
  for (std::uint32_t vc = 0; vc < in_vcs_.size(); ++vc) {
    const InVc& in = in_vcs_[vc];
    if (in.front == kNone || in.rests) {
      continue;
    }
    Waiting one{vc, {}};
    bool can = false;
    if (in.out != kNone) {
      can = out_vcs_[in.out].credits > 0 || in.port >= channels_;
      one.for_.push_back(
          in.out);  // a channel's output VC has the number of the input VC it leads to
    } else {
      Candidates outputs;
      outputs.add(in.port, in.vcs);
      const Packet& packet = packets_[in.front];
      if (routing_.is_adaptive()) {
        RouteState state = packet.route;
        routing_.next(state, in_[port_of(vc)].router, unused, outputs);
      }
      for (int i = 0; i < outputs.count; ++i) {
        const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
        can |= open_vcs(output, packet.flits) != 0 || output.port >= channels_;
        for (VcMask rest = output.vcs; rest != 0; rest &= rest - 1) {
          const std::uint32_t out =
              in_vc(output.port, static_cast<std::uint32_t>(std::countr_zero(rest)));
          const std::uint32_t owner = out_vcs_[out].owner;
          if (owner != kNone && owner != vc) {
            one.for_.push_back(owner);
          } else if (output.port < channels_) {
            one.for_.push_back(out);
          }
        }
      }
    }
    // A flit of an open packet may still be upstream: then this one waits for nobody's room.
    if (!can && (in.out == kNone || in.count > 0)) {
      list.push_back(std::move(one));
    } else if (!can && in.count == 0) {
      list.push_back({vc, {}});
    }
  }
  return list;
}

std::string Engine::name_of_vc(std::uint32_t in_vc) const {
  const auto name = [&](std::int32_t router) {
    return graph_.router_names.empty() ? std::to_string(router)
                                       : graph_.router_names[static_cast<std::size_t>(router)];
  };
  const std::uint32_t port = port_of(in_vc);
  const auto router = static_cast<std::int32_t>(in_[port].router);
  const std::string from = port < channels_ ? "router " + name(graph_.channels[port].source)
                                            : fmt::format("node {}", port - channels_);
  return fmt::format("router {} from {}, VC {}: {} flits", name(router), from, vc_of(in_vc),
                     in_vcs_[in_vc].count);
}

}  // namespace orrery::flit
