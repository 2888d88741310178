// SPDX-License-Identifier: Apache-2.0
/// All that a routing may draw, for the check of dependencies.
#include <algorithm>
#include <bit>

#include "machine/network/flit/bit_set.h"
#include "machine/network/flit/routing.h"

namespace orrery::flit {

void Routing::all_choices(const RouteState& state, std::uint32_t router,
                          std::vector<Choice>& into) const {
  into.clear();
  Random unused(0);
  const bool ends = is_there(state, router);
  const bool adapts = is_adaptive() && !ends;
  const std::uint32_t count = ends || adapts ? 1 : draws(state, router);
  for (std::uint32_t draw = 0; draw < count; ++draw) {
    Candidates outputs;
    RouteState moved = state;
    if (ends || adapts) {
      next(moved, router, unused, outputs);
    } else {
      const Candidate output = single(moved, router, draw);
      has_escapes() ? escaping(moved, router, output, outputs)
                    : outputs.add(output.port, output.vcs);
    }
    for (int i = 0; i < outputs.count; ++i) {
      const Candidate& output = outputs.list[static_cast<std::size_t>(i)];
      const bool holds = i + 1 == outputs.count || !(adapts || has_escapes());
      if (!splits_choices() || ends) {
        into.push_back({moved, output, holds});
        continue;
      }
      for_each_bit(output.vcs, [&](std::uint32_t vc) {
        into.push_back({moved, {output.port, VcMask{1} << vc}, holds});
        if (depends_on_vc()) {
          enter(into.back().state, vc);
        }
      });
    }
  }
}

/// Returns whether the VCs of different choices overlap, so that each is looked at alone.
bool Routing::splits_choices() const {
  const bool rings = graph_->shape == Shape::torus && std::popcount(all_) % 2 != 0;
  return follows_booksim() && (has_escapes() || draws_at_start() || rings);
}

bool Routing::is_ordered() const {
  if (routes_ != nullptr) {
    return false;
  }
  const bool overlaps = splits_choices();
  switch (graph_->shape) {
    case Shape::mesh:
      return algorithm_ == Algorithm::dor || algorithm_ == Algorithm::yx ||
             (draws_at_start() && !overlaps);
    case Shape::torus:
      return algorithm_ == Algorithm::dor && !overlaps;
    case Shape::flattened_butterfly:
      return algorithm_ == Algorithm::dor;
    case Shape::fat_tree:
      return algorithm_ == Algorithm::nca;
    case Shape::fly:
      return algorithm_ == Algorithm::dest_tag;
    default:
      return false;
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
  if (has_orders()) {
    states.push_back(states[0]);
    states[1].phase = 1;
  } else if (algorithm_ == Algorithm::valiant || algorithm_ == Algorithm::ugal ||
             algorithm_ == Algorithm::romm) {
    const auto from = static_cast<std::uint32_t>(graph_->nodes[source].inject);
    const std::uint32_t to = eject_router(states[0]);
    const RouteState plain = states[0];
    states.clear();
    // The routers of a dragonfly's group are one to its routes, but to BookSim's.
    const bool by_group = graph_->shape == Shape::dragonfly && !follows_booksim();
    const std::int32_t alike = by_group ? graph_->extents[0] : 1;
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
