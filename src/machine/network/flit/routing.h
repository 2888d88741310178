// SPDX-License-Identifier: Apache-2.0
/// Says where a head flit goes next, and in which virtual channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "machine/network/flit/hop_table.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/router_graph.h"

namespace orrery::flit {

enum class Algorithm : std::uint8_t {
  dor,
  yx,
  o1turn,
  adaptive_xy_yx,
  romm,
  valiant,
  ugal,
  adaptive,
  nca,
  dest_tag,
  min,
  up_down
};
constexpr auto named_values(Algorithm) {
  return std::to_array<Named<Algorithm>>({
      {Algorithm::dor, "dor",
       "dimension order, lowest first; on a torus the shorter way, ties at random, two halves of "
       "the VCs"},
      {Algorithm::yx, "yx", "dimension order, highest first; of meshes"},
      {Algorithm::o1turn, "o1turn",
       "dor or yx, drawn at random for each packet, a half of the VCs each; of meshes (xy_yx)"},
      {Algorithm::adaptive_xy_yx, "adaptive_xy_yx",
       "dor or yx, by the shorter queue at the first router, equal ones at random; a half of the "
       "VCs each; of meshes"},
      {Algorithm::romm, "romm",
       "dor to a random router of the minimal rectangle, then dor; a half of the VCs each; of "
       "meshes"},
      {Algorithm::valiant, "valiant",
       "to a random router of all (of a dragonfly: group), then on; a class of VCs each; of "
       "meshes, "
       "tori, flattened butterflies and dragonflies"},
      {Algorithm::ugal, "ugal",
       "valiant, or the minimal way where at the first router queue x hops is not longer (Singh "
       "2005)"},
      {Algorithm::adaptive, "adaptive",
       "any dimension that comes nearer, by room downstream; the first VC (two on a torus) as "
       "escape by dor (Duato 1993)"},
      {Algorithm::nca, "nca",
       "up through random ports to the nearest common ancestor, then down; of fat trees, trees "
       "and clusters"},
      {Algorithm::dest_tag, "dest_tag", "stage s uses digit n-1-s of the destination; of flies"},
      {Algorithm::min, "min",
       "the shortest way by latency; of any graph. Free of deadlock only where the graph is: the "
       "report says"},
      {Algorithm::up_down, "up_down",
       "up*/down*: the shortest way that goes up a spanning tree, then down; of any graph, free of "
       "deadlock"},
  });
}

/// Rules say which virtual channels packets take. BookSim 2 (routefunc.cpp and flatfly_onchip.cpp
/// of 923f1a9, dragonfly.cpp of 0d815b7) differs from what stands at the algorithms in:
///
///   halves      of an odd number of VCs share the middle one; o1turn and adaptive_xy_yx go on in
///               the order of the half that a packet's VC is in
///   two phases  a packet at its target's router takes any VC on, whatever its phase; valiant on a
///               flattened butterfly draws a node and ends at the target's router when it passes it
///   dragonfly   one VC for each phase, to nodes too: of min 0 and, behind the link between groups,
///               1; of ugal 0 to the router of the drawn node, 1 to that link, 2 behind it
///   adaptive    its sets of outputs keep one of each priority, so a head asks for the lowest
///               dimension that differs: for the VCs behind the escapes (of a torus for VC 3, going
///               down where both ways are as long) and, behind these, for the escape by dor; what
///               is in an escape asks for escapes only
enum class Rules : std::uint8_t { ours, booksim };

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

/// A set of virtual channels of one port: bit v is VC v.
using VcMask = std::uint64_t;

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

/// Returns the default of a shape: dor, nca, dest_tag or min.
Algorithm default_algorithm(Shape shape);

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
  Algorithm algorithm() const { return algorithm_; }
  /// Returns whether a head may choose among outputs while it waits (otherwise the first choice
  /// holds).
  bool is_adaptive() const { return algorithm_ == Algorithm::adaptive && rules_ == Rules::ours; }
  /// Returns whether a head asks for its second output, an escape, behind the first (BookSim's
  /// adaptive).
  bool has_escapes() const { return algorithm_ == Algorithm::adaptive && rules_ == Rules::booksim; }

  /// Draws what a packet decides at its source. `route`: where packets say theirs.
  RouteState start(std::uint32_t source, std::uint32_t target, std::uint32_t route,
                   Random& random) const;

  /// Returns whether next() may draw, and not only start().
  bool draws_en_route() const {
    return routes_ == nullptr && (algorithm_ == Algorithm::nca || graph_->shape == Shape::torus);
  }

  /// Returns whether start() may draw.
  bool draws_at_start() const;
  /// Returns whether every try to leave a node is for one virtual channel that is drawn (BookSim's
  /// dragonflies), and not for the next in turn.
  bool draws_first_vc() const {
    return routes_ == nullptr && graph_->shape == Shape::dragonfly &&
           (algorithm_ == Algorithm::min || algorithm_ == Algorithm::ugal);
  }

  /// Returns whether next() depends on router and target only.
  bool is_fixed() const {
    return routes_ == nullptr &&
           (algorithm_ == Algorithm::dest_tag ||
            (algorithm_ == Algorithm::dor &&
             (graph_->shape == Shape::mesh || graph_->shape == Shape::flattened_butterfly)));
  }

  /// Returns whether a packet chooses at its first router between what start() drew and the minimal
  /// route, by the queues there.
  bool compares() const { return algorithm_ == Algorithm::ugal; }
  /// Returns whether a packet chooses at `router`, its first, between orders, by the queues there.
  bool compares_orders(const RouteState& state, std::uint32_t router) const {
    return algorithm_ == Algorithm::adaptive_xy_yx && router != eject_router(state);
  }
  /// Returns the minimal route of a packet whose first router is `router`.
  static RouteState minimal(RouteState state, std::uint32_t router) {
    state.via = router;
    return state;
  }
  /// Returns the number of channels from `router` on; what is at random takes as many.
  int channels_ahead(RouteState state, std::uint32_t router) const;

  /// Returns whether enter() decides anything.
  bool depends_on_vc() const { return has_escapes() || (rules_ == Rules::booksim && has_orders()); }
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

  /// Returns whether waiting cannot go in a circle whatever the extents, since every route takes
  /// channels and classes of virtual channels in one order (Dally & Seitz 1987): dimensions one
  /// after the other, stages, up and then down, the first phase and then the second.
  bool is_ordered() const;

  VcMask all_vcs() const { return all_; }

 private:
  Routing(const RouterGraph& graph, Algorithm algorithm, int vcs, Rules rules);
  Result<void> prepare();

  std::int32_t coordinate(std::uint32_t router, std::size_t dimension) const {
    return coordinates_[router * dimensions_ + dimension];
  }
  std::uint32_t channel(std::uint32_t router, std::size_t port) const {
    return ports_[router * radix_ + port];
  }
  std::uint32_t eject_router(const RouteState& state) const {
    return static_cast<std::uint32_t>(graph_->nodes[state.target].eject);
  }
  bool is_there(const RouteState& state, std::uint32_t router) const {
    return router == eject_router(state) && !on_detour(state, router);
  }
  /// Says whether a packet of valiant or ugal is still on the way to `via`, of a dragonfly to its
  /// group.
  bool on_detour(const RouteState& state, std::uint32_t router) const;
  bool follows_booksim() const { return rules_ == Rules::booksim; }
  bool has_orders() const {
    return algorithm_ == Algorithm::o1turn || algorithm_ == Algorithm::adaptive_xy_yx;
  }
  /// Returns the VCs to the node of a packet that is at its target's router.
  VcMask vcs_to_node(const RouteState& state) const {
    const bool by_phase =
        follows_booksim() && graph_->shape == Shape::dragonfly && algorithm_ != Algorithm::up_down;
    return by_phase ? dragonfly_vcs(std::max(state.phase, first_phase())) : all_;
  }
  /// Returns the phase of BookSim's dragonflies that begins where a packet goes to its target.
  std::uint8_t first_phase() const { return algorithm_ == Algorithm::min ? 0 : 1; }
  VcMask half(unsigned which) const { return which == 0 ? low_ : high_; }
  /// Returns the VCs of a packet in its phase, of two.
  VcMask phase_vcs(const RouteState& state, std::uint32_t router) const {
    return follows_booksim() && router == eject_router(state) ? all_ : half(state.phase);
  }
  /// Returns the VCs of a ring's half, within those of the phase.
  VcMask ring_vcs(const RouteState& state, std::uint32_t router) const;
  Candidate mesh_hop(std::uint32_t router, std::uint32_t goal, bool highest_first) const;
  Candidate torus_hop(RouteState& state, std::uint32_t router, std::uint32_t goal,
                      std::uint32_t draw) const;
  Candidate tree_hop(const RouteState& state, std::uint32_t router, std::uint32_t draw) const;
  std::uint32_t fat_tree_goal(const RouteState& state) const;
  std::uint32_t weight_below(std::uint32_t router) const;
  bool goes_down(const RouteState& state, std::uint32_t router) const;
  std::uint32_t express_channel(std::uint32_t router, std::size_t d, std::int32_t ahead) const;
  VcMask dragonfly_vcs(unsigned group) const;
  Candidate dragonfly_hop(RouteState& state, std::uint32_t router) const;
  /// Returns one output, with `draw` for what is at random; `draws`: how many draws differ.
  Candidate single(RouteState& state, std::uint32_t router, std::uint32_t draw) const;
  std::uint32_t draws(const RouteState& state, std::uint32_t router) const;
  void adaptive(RouteState& state, std::uint32_t router, Candidates& into) const;
  bool splits_choices() const;
  void escaping(const RouteState& state, std::uint32_t router, const Candidate& escape,
                Candidates& into) const;
  std::uint32_t goal(RouteState& state, std::uint32_t router) const;
  std::uint32_t port_to_node(std::uint32_t node) const {
    return static_cast<std::uint32_t>(graph_->channels.size()) + node;
  }

  const RouterGraph* graph_;
  const std::vector<Candidate>* routes_ = nullptr;
  Algorithm algorithm_;
  Rules rules_;
  VcMask all_ = 0;
  VcMask low_ = 0;
  VcMask high_ = 0;
  std::size_t dimensions_ = 0;
  std::size_t radix_ = 0;
  std::vector<std::int32_t> coordinates_;  ///< by router and dimension
  std::vector<std::uint32_t> ports_;       ///< by router and port: channel
  NearerChannels nearer_;                  ///< of trees
  HopTable table_;                         ///< of min and up_down
};

}  // namespace orrery::flit
