// SPDX-License-Identifier: Apache-2.0
/// Adaptive routing: all that comes nearer, and an escape.
#include <bit>
#include <cstdlib>

#include "machine/network/flit/routing.h"

namespace orrery::flit {
namespace {

constexpr std::uint32_t kNoEscape = UINT32_MAX;

}  // namespace

void Routing::adaptive(RouteState& state, std::uint32_t router, Candidates& into) const {
  const bool torus = graph_->shape == Shape::torus;
  const VcMask escapes = torus ? 0b11 : 0b1;
  const std::uint32_t to = goal(state, router);
  Candidate escape{kNoEscape, 0};
  for (std::size_t d = 0; d < dimensions_; ++d) {
    const std::int32_t from = coordinate(router, d);
    const std::int32_t ahead = coordinate(to, d) - from;
    if (ahead == 0) {
      continue;
    }
    const std::int32_t extent = graph_->extents[d];
    const bool up = torus ? 2 * ((ahead + extent) % extent) <= extent : ahead > 0;
    const std::uint32_t port = channel(router, 2 * d + (up ? 0 : 1));
    if (escape.port == kNoEscape) {  // dor; another VC before the end of the ring than after it
      const bool wraps = torus && up == (ahead < 0);
      escape = {port, VcMask{1} << (wraps ? 1U : 0U)};
    }
    into.add(port, all_ & ~escapes);
  }
  into.preferred = into.count;
  into.add(escape.port, escape.vcs);
}

void Routing::enter(RouteState& state, std::uint32_t vc) const {
  if (!has_escapes()) {
    state.phase = vc < static_cast<std::uint32_t>(std::popcount(all_) / 2) ? 0 : 1;
  } else {
    const bool escapes = vc < (graph_->shape == Shape::torus ? 2U : 1U);
    state.phase = escapes ? 1 : 0;
    state.dimension = escapes ? state.dimension : std::int8_t{-1};
  }
}

/// BookSim's: `escape`, the output of dor, comes behind the others.
void Routing::escaping(const RouteState& state, std::uint32_t router, const Candidate& escape,
                       Candidates& into) const {
  constexpr VcMask kBehindTwoEscapes = VcMask{1} << 3U;
  const bool torus = graph_->shape == Shape::torus;
  if (state.phase == 0 && !torus) {
    into.add(escape.port, all_ & ~VcMask{1});
  } else if (state.phase == 0) {
    const auto d = static_cast<std::size_t>(state.dimension);
    const std::int32_t extent = graph_->extents[d];
    const std::int32_t ahead =
        (coordinate(eject_router(state), d) - coordinate(router, d) + extent) % extent;
    into.add(channel(router, 2 * d + (2 * ahead < extent ? 0 : 1)), kBehindTwoEscapes);
  }
  into.preferred = into.count;
  into.add(escape.port, VcMask{1} << (torus ? state.ring : 0U));
}

}  // namespace orrery::flit
