// SPDX-License-Identifier: Apache-2.0
/// Names routing algorithms and says what each does, whatever the extents of its network.
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"
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
       "meshes, tori, flattened butterflies and dragonflies"},
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

/// Returns the default of a shape: dor, nca, dest_tag or min.
Algorithm default_algorithm(Shape shape);

/// Returns whether networks of a shape can be routed by an algorithm.
bool fits(Shape shape, Algorithm algorithm);

/// RoutingTraits says what an algorithm does on a shape of network, by whose rules.
struct RoutingTraits {
  Shape shape = Shape::graph;
  Algorithm algorithm = Algorithm::min;
  Rules rules = Rules::ours;
  int vcs = 1;             ///< virtual channels of a port
  bool is_stated = false;  ///< every packet says its route

  bool follows_booksim() const { return rules == Rules::booksim; }
  /// Returns whether packets go group by group, a class of VCs for each.
  bool goes_by_groups() const {
    return shape == Shape::dragonfly && algorithm != Algorithm::up_down;
  }
  /// Returns whether hops stand in a table of all routers.
  bool has_table() const {
    return algorithm == Algorithm::up_down ||
           (algorithm == Algorithm::min && shape != Shape::dragonfly);
  }
  /// Returns whether packets may go to a router first that is drawn.
  bool has_waypoint() const {
    return algorithm == Algorithm::romm || algorithm == Algorithm::valiant ||
           algorithm == Algorithm::ugal;
  }
  /// Returns whether packets take dimensions in one of two orders.
  bool has_orders() const {
    return algorithm == Algorithm::o1turn || algorithm == Algorithm::adaptive_xy_yx;
  }
  bool has_two_phases() const { return has_waypoint() || has_orders(); }
  /// Returns whether a head may choose among outputs while it waits (otherwise the first choice
  /// holds).
  bool is_adaptive() const { return algorithm == Algorithm::adaptive && rules == Rules::ours; }
  /// Returns whether a head asks for its second output, an escape, behind the first (BookSim's
  /// adaptive).
  bool has_escapes() const { return algorithm == Algorithm::adaptive && rules == Rules::booksim; }
  /// Returns whether Routing::enter() decides anything.
  bool depends_on_vc() const { return has_escapes() || (follows_booksim() && has_orders()); }
  /// Returns whether a packet chooses at its first router between what start() drew and the minimal
  /// route, by the queues there.
  bool compares() const { return algorithm == Algorithm::ugal; }

  /// Returns whether Routing::start() may draw.
  bool draws_at_start() const { return !is_stated && has_two_phases(); }
  /// Returns whether Routing::next() may draw.
  bool draws_en_route() const {
    return !is_stated && (algorithm == Algorithm::nca || shape == Shape::torus);
  }
  /// Returns whether every try to leave a node is for one virtual channel that is drawn (BookSim's
  /// dragonflies), and not for the next in turn.
  bool draws_first_vc() const {
    return !is_stated && shape == Shape::dragonfly &&
           (algorithm == Algorithm::min || algorithm == Algorithm::ugal);
  }
  /// Returns whether Routing::next() depends on router and target only.
  bool is_fixed() const;
  /// Returns whether the VCs of different choices overlap, so that each is looked at alone.
  bool splits_choices() const;
  /// Returns whether waiting cannot go in a circle whatever the extents, since every route takes
  /// channels and classes of virtual channels in one order (Dally & Seitz 1987): dimensions one
  /// after the other, stages, up and then down, the first phase and then the second.
  bool is_ordered() const;

  /// Returns the number of classes of virtual channels, of which each has one at least.
  int vc_classes() const;
  /// Returns the phase of BookSim's dragonflies that begins where a packet goes to its target.
  std::uint8_t first_phase() const { return algorithm == Algorithm::min ? 0 : 1; }
};

}  // namespace orrery::flit
