// SPDX-License-Identifier: Apache-2.0
/// Chimera's machines (ISCA 2025): flit networks that differ in topology only.
///
/// Links of one 50-byte flit per cycle of 1 ns and 100 cycles; packets of 256 bytes behind a head;
/// 4 virtual channels of 318 flits, iSLIP, virtual cut-through; GPUs hang on switches by such links
/// too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/names.h"
#include "machine/network/flit/closed_loop.h"

namespace orrery::chimera {

enum class Topology : std::uint8_t { mesh2d, torus2d, torus3d, two_switch };
constexpr auto named_values(Topology) {
  return std::to_array<Named<Topology>>({
      {Topology::mesh2d, "mesh2d", "Dojo: a mesh, dimension order"},
      {Topology::torus2d, "torus2d", "TPU v3: a torus, dimension order"},
      {Topology::torus3d, "torus3d", "TPU v4: a torus of three dimensions"},
      {Topology::two_switch, "two_switch",
       "A100: two switches joined by 8 links, nearest common ancestor"},
  });
}

using Extents = std::array<std::int32_t, 3>;  ///< x, y, z; of two switches GPUs of each, switches

/// Returns the published extents: 5 x 5, 4 x 4, 2 x 2 x 2, 8 x 2.
Extents published_extents(Topology topology);

/// A block of nodes, as a stage or a group holds it.
struct Block {
  Extents origin{0, 0, 0};
  Extents extents{1, 1, 1};

  std::int32_t ranks() const { return extents[0] * extents[1] * extents[2]; }
};

class Network {
 public:
  Network(Topology topology, const Extents& extents);

  Topology topology() const { return topology_; }
  const Extents& extents() const { return extents_; }
  bool is_switch() const { return topology_ == Topology::two_switch; }
  /// Returns the node of a rank of a block, x fastest.
  std::uint32_t node(const Block& block, std::int32_t rank) const;

  /// Ends of the events. Never deadlocks: dimension order in classes, or up and down.
  flit::LoopResult run(const flit::LoopSchedule& schedule, bool shortcuts = true) const;

 private:
  Topology topology_;
  Extents extents_;
  flit::RouterSettings router_;
  std::unique_ptr<flit::RouterGraph> graph_;
  std::unique_ptr<flit::Routing> routing_;
};

}  // namespace orrery::chimera
