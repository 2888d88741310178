// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "collective/cost.h"
#include "collective/layout/convert.h"
#include "machine/topology/link_map.h"

namespace orrery::layout {
namespace {

class MachineCost {
 public:
  MachineCost(Mesh mesh, const machine::Machine& machine)
      : mesh_(std::move(mesh)),
        machine_(machine::expand_shapes(machine)),
        links_(machine_.network) {}

  double operator()(const Step& step, const Shape& shape) const {
    if (!moves(step.operation)) {
      return 0;
    }
    const auto kind = collective_of(step.operation);
    return kind && changed(step) == 1 ? along_axis(*kind, step, shape) : at_once(step, shape);
  }

 private:
  static std::int64_t changed(const Step& step) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < step.from.size(); ++i) {
      count += step.from[i] != step.to[i] ? 1 : 0;
    }
    return count;
  }

  double along_axis(graph::CollectiveKind kind, const Step& step, const Shape& shape) const {
    std::size_t axis = 0;
    while (step.from[axis] == step.to[axis]) {
      ++axis;
    }
    // The whole buffer is what a rank has of copies or partial sums; of an exchange what it sends.
    std::int64_t elements = 0;
    for (std::int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      elements = std::max({elements, held(shape, mesh_, step.from, rank).elements(),
                           held(shape, mesh_, step.to, rank).elements()});
    }
    return to_seconds(collective::collective_time(
        kind, shape.element * elements,
        collective::extents_of(mesh_.stride(axis), mesh_.axes[axis].size, machine_),
        collective::CollectiveAlgorithm::automatic, machine_));
  }

  double at_once(const Step& step, const Shape& shape) const {
    std::map<topology::LinkId, Busy> busy;
    double latency = 0;
    for (const Piece& piece : moves_of(step, shape, mesh_).pieces) {
      if (piece.sender == piece.receiver) {
        continue;
      }
      const topology::Route route = links_.message(piece.sender, piece.receiver);
      const auto bytes = static_cast<double>((shape.element * piece.box.elements()).value());
      latency = std::max(latency, to_seconds(route.latency + route.overhead));
      for (const topology::LinkUse& use : route.links) {
        Busy& link = busy[use.link];
        link.seconds += use.weight * bytes * route.seconds_per_byte;
        if (links_.owners(use.link) == 1 && links_.dimension_of(use.link) == route.dimension) {
          const bool sends = links_.first_owner(use.link) == piece.sender;
          link.peers.insert(sends ? piece.receiver : piece.sender);
        }
      }
    }
    double longest = 0;
    for (const auto& [id, link] : busy) {
      const auto& dimension =
          links_.dimensions()[static_cast<std::size_t>(links_.dimension_of(id))];
      const double share = topology::share_with_peers(dimension, std::ssize(link.peers));
      longest = std::max(longest, link.seconds / share);
    }
    return latency + longest;
  }

  struct Busy {
    double seconds = 0;
    std::set<std::int64_t> peers;  ///< of its device, where it has one
  };

  Mesh mesh_;
  machine::Machine machine_;
  topology::LinkMap links_;
};

}  // namespace

Cost machine_cost(const Mesh& mesh, const machine::Machine& machine) {
  return MachineCost(mesh, machine);
}

}  // namespace orrery::layout
