// SPDX-License-Identifier: Apache-2.0
/// All that a routing may draw, for the check of dependencies.
#include <algorithm>

#include "machine/network/flit/bit_set.h"
#include "machine/network/flit/routing.h"

namespace orrery::flit {

void Routing::all_choices(const RouteState& state, std::uint32_t router,
                          std::vector<Choice>& into) const {
  into.clear();
  Random unused(0);
  const bool ends = is_there(state, router);
  const bool adapts = traits_.is_adaptive() && !ends;
  const std::uint32_t count = ends || adapts ? 1 : draws(state, router);
  for (std::uint32_t draw = 0; draw < count; ++draw) {
    Candidates outputs;
    RouteState moved = state;
    if (ends || adapts) {
      next(moved, router, unused, outputs);
    } else {
      const Candidate output = single(moved, router, draw);
      traits_.has_escapes() ? escaping(moved, router, output, outputs)
                            : outputs.add(output.port, output.vcs);
    }
    for (int i = 0; i < outputs.count; ++i) {
      const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
      const bool holds = i + 1 == outputs.count || !(adapts || traits_.has_escapes());
      if (!traits_.splits_choices() || ends) {
        into.push_back({moved, output, holds});
        continue;
      }
      for_each_bit(output.vcs, [&](std::uint32_t vc) {
        into.push_back({moved, {output.port, VcMask{1} << vc}, holds});
        if (traits_.depends_on_vc()) {
          enter(into.back().state, vc);
        }
      });
    }
  }
}

int Routing::channels_ahead(RouteState state, std::uint32_t router) const {
  int count = 0;
  while (!is_there(state, router)) {
    const Candidate hop = single(state, router, 0);
    router = static_cast<std::uint32_t>(graph_->channels[hop.port].target);
    ++count;
  }
  return count;
}

std::vector<RouteState> Routing::all_starts(std::uint32_t source, std::uint32_t target) const {
  std::vector<RouteState> states(1);
  states[0].target = target;
  if (traits_.has_orders()) {
    states.push_back(states[0]);
    states[1].phase = 1;
  } else if (traits_.has_waypoint()) {
    const auto from = static_cast<std::uint32_t>(graph_->nodes[source].inject);
    const std::uint32_t to = eject_router(states[0]);
    const RouteState plain = states[0];
    states.clear();
    // The routers of a dragonfly's group are one to its routes, but to BookSim's.
    const bool by_group = graph_->shape == Shape::dragonfly && !traits_.follows_booksim();
    const std::int32_t alike = by_group ? extent(0) : 1;
    for (std::uint32_t via = 0; via < static_cast<std::uint32_t>(graph_->routers);
         via += static_cast<std::uint32_t>(alike)) {
      bool inside = true;
      for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
        const auto [low, high] =
            std::minmax({ports_.coordinate(from, d), ports_.coordinate(to, d)});
        inside &= low <= ports_.coordinate(via, d) && ports_.coordinate(via, d) <= high;
      }
      if (inside || traits_.algorithm != Algorithm::romm) {
        states.push_back(plain);
        states.back().via = via;
      }
    }
  }
  return states;
}

}  // namespace orrery::flit
