// SPDX-License-Identifier: Apache-2.0
/// Says where a head flit goes next, and in which virtual channels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "machine/network/flit/hop_table.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/router_graph.h"
#include "machine/network/flit/router_ports.h"
#include "machine/network/flit/routing_traits.h"
#include "machine/network/flit/tree_hops.h"
#include "machine/network/flit/vc_classes.h"

namespace orrery::flit {

/// RouteState is what a packet carries for its routing.
struct RouteState {
  std::uint32_t target = 0;  ///< node
  std::uint32_t via = 0;     ///< intermediate router; of a stated route its next hop
  /// Order; route to `via` (0) and from there (1); up (0) or down (1); groups left of a dragonfly;
  /// of BookSim's adaptive whether it is in an escape.
  std::uint8_t phase = 0;
  std::uint8_t ring = 0;       ///< half of the VCs in the present dimension of a torus
  std::int8_t dimension = -1;  ///< that it moves in, of a torus
  std::uint8_t up = 0;         ///< direction in it
};

struct Candidate {
  std::uint32_t port = 0;  ///< of the engine's numbering: channels, then ejections by node
  VcMask vcs = 0;
  Interval interval = kEveryCycle;  ///< between flits of this packet
};

/// At most so many outputs are good for one head.
inline constexpr int kMostCandidates = 64;
struct Candidates {
  std::array<Candidate, kMostCandidates> list;
  int count = 0;
  int preferred = 0;  ///< the first so many come before the others, the one with most room first
  void add(std::uint32_t port, VcMask vcs) {
    list[static_cast<std::size_t>(count++)] = {port, vcs};
  }
};

class Routing {
 public:
  /// Mistakes: an algorithm that the shape does not have, too few virtual channels for its classes,
  /// routers that cannot reach each other.
  static Result<Routing> make(const RouterGraph& graph, Algorithm algorithm, int vcs,
                              Rules rules = Rules::ours);

  /// Every packet says its route: a number of `routes`, its first hop there; each hop is followed
  /// by the next until one leads to a node. `routes` may grow while the routing is used.
  Routing(const RouterGraph& graph, int vcs, const std::vector<Candidate>& routes);

  const RouterGraph& graph() const { return *graph_; }
  const RoutingTraits& traits() const { return traits_; }
  VcMask all_vcs() const { return vcs_.all(); }

  /// Draws what a packet decides at its source. `route`: where packets say theirs.
  RouteState start(std::uint32_t source, std::uint32_t target, std::uint32_t route,
                   Random& random) const;

  /// Returns whether a packet chooses at `router`, its first, between orders, by the queues there.
  bool compares_orders(const RouteState& state, std::uint32_t router) const {
    return traits_.algorithm == Algorithm::adaptive_xy_yx && router != eject_router(state);
  }
  /// Returns the minimal route of a packet whose first router is `router`.
  static RouteState minimal(RouteState state, std::uint32_t router) {
    state.via = router;
    return state;
  }
  /// Returns the number of channels from `router` on; what is at random takes as many.
  int channels_ahead(RouteState state, std::uint32_t router) const;

  /// A packet has won VC `vc` towards its next router.
  void enter(RouteState& state, std::uint32_t vc) const;

  /// Finds the outputs at `router`. Changes the state as if the head moved on (phases, rings). What
  /// is at random is drawn.
  void next(RouteState& state, std::uint32_t router, Random& random, Candidates& into) const;

  /// A Choice is one output of next(), or one of several where it offers them. For the check of
  /// dependencies: all choices that next() might draw, each with the state that it leaves; and all
  /// states that start() might draw.
  struct Choice {
    RouteState state;
    Candidate output;
    bool holds = true;  ///< it counts as held: not of an adaptive hop that has an escape
  };
  void all_choices(const RouteState& state, std::uint32_t router, std::vector<Choice>& into) const;
  std::vector<RouteState> all_starts(std::uint32_t source, std::uint32_t target) const;

 private:
  Routing(const RouterGraph& graph, const RoutingTraits& traits);
  Result<void> make_tables();

  std::uint32_t eject_router(const RouteState& state) const {
    return static_cast<std::uint32_t>(graph_->nodes[state.target].eject);
  }
  std::int32_t extent(std::size_t d) const { return graph_->extents[d]; }
  bool is_there(const RouteState& state, std::uint32_t router) const {
    return router == eject_router(state) && !on_detour(state, router);
  }
  /// Says whether a packet of valiant or ugal is still on the way to `via`, of a dragonfly to its
  /// group.
  bool on_detour(const RouteState& state, std::uint32_t router) const;
  std::uint32_t goal(RouteState& state, std::uint32_t router) const;
  std::uint32_t draw_via(std::uint32_t source, std::uint32_t to, Random& random) const;
  std::uint32_t draw_between(std::uint32_t from, std::uint32_t to, Random& random) const;

  /// Returns one output, with `draw` for what is at random; `draws`: how many draws differ.
  Candidate single(RouteState& state, std::uint32_t router, std::uint32_t draw) const;
  std::uint32_t draws(const RouteState& state, std::uint32_t router) const;
  std::uint32_t mesh_hop(std::uint32_t router, std::uint32_t goal, bool highest_first) const;
  std::uint32_t express_channel(std::uint32_t router, std::size_t d, std::int32_t ahead) const;
  Candidate torus_hop(RouteState& state, std::uint32_t router, std::uint32_t goal,
                      std::uint32_t draw) const;
  std::uint32_t butterfly_hop(std::uint32_t router, std::uint32_t goal) const;
  std::uint32_t fly_hop(std::uint32_t router, std::uint32_t target) const;
  Candidate dragonfly_hop(RouteState& state, std::uint32_t router) const;
  void adaptive(RouteState& state, std::uint32_t router, Candidates& into) const;
  void escaping(const RouteState& state, std::uint32_t router, const Candidate& escape,
                Candidates& into) const;

  const RouterGraph* graph_;
  RoutingTraits traits_;
  VcClasses vcs_;
  RouterPorts ports_;
  const std::vector<Candidate>* routes_ = nullptr;
  std::optional<TreeHops> trees_;  ///< of nca
  HopTable table_;                 ///< of min and up_down
};

}  // namespace orrery::flit
