// SPDX-License-Identifier: Apache-2.0
/// All that a routing may draw, for the check of dependencies.
#include <algorithm>

#include "machine/network/flit/routing.h"

namespace orrery::flit {

void Routing::all_choices(const RouteState& state, std::uint32_t router,
                          std::vector<Choice>& into) const {
  into.clear();
  Random unused(0);
  if (is_adaptive() || is_there(state, router)) {
    Candidates outputs;
    Choice choice{state, {}};
    next(choice.state, router, unused, outputs);
    for (int i = 0; i < outputs.count; ++i) {
      choice.output = outputs.list[static_cast<std::size_t>(i)];
      into.push_back(choice);
    }
    return;
  }
  for (std::uint32_t draw = 0; draw < draws(state, router); ++draw) {
    Choice choice{state, {}};
    choice.output = single(choice.state, router, draw);
    into.push_back(choice);
  }
}

std::vector<RouteState> Routing::all_starts(std::uint32_t source, std::uint32_t target) const {
  std::vector<RouteState> states(1);
  states[0].target = target;
  if (algorithm_ == Algorithm::o1turn) {
    states.push_back(states[0]);
    states[1].phase = 1;
  } else if (algorithm_ == Algorithm::valiant || algorithm_ == Algorithm::ugal ||
             algorithm_ == Algorithm::romm) {
    const auto from = static_cast<std::uint32_t>(graph_->nodes[source].inject);
    const std::uint32_t to = eject_router(states[0]);
    const RouteState plain = states[0];
    states.clear();
    // The routers of a dragonfly's group are one to its routes.
    const std::int32_t alike = graph_->shape == Shape::dragonfly ? graph_->extents[0] : 1;
    for (std::uint32_t via = 0; via < static_cast<std::uint32_t>(graph_->routers);
         via += static_cast<std::uint32_t>(alike)) {
      bool inside = true;
      for (std::size_t d = 0; d < dimensions_; ++d) {
        const auto [low, high] = std::minmax({coordinate(from, d), coordinate(to, d)});
        inside &= low <= coordinate(via, d) && coordinate(via, d) <= high;
      }
      if (inside || algorithm_ != Algorithm::romm) {
        states.push_back(plain);
        states.back().via = via;
      }
    }
  }
  return states;
}

}  // namespace orrery::flit
