// SPDX-License-Identifier: Apache-2.0
/// The published pairs on Chimera's flit networks, cycle by cycle, where no two messages meet.
///
/// A message of B bytes is packets of 256 payload bytes, 6 flits of 50 bytes and a head, on links
/// of one flit per cycle:
///
///   F(B)    = 7 floor(B / 256) + (r > 0 ? ceil(8 r / 400) + 1 : 0),  r = B mod 256
///   step(B) = F(B) + c,  c = 109 cycles to a neighbour on mesh and torus, 205 over a switch
///
/// on an X x Y group of N ranks, n steps in all:
///
///   AG   X-1 steps of M/N, Y-1 of M/Y; switch: steps of 2^i M/N, i < log2 N
///   RS   X-1 of M/X, Y-1 of M/N; switch: those of AG backwards; + n additions + n-1 releases
///   AR   RS + 1 + AG
///   A2A  X-1 of M/(X N), Y-1 of M/(Y N); switch: log2 N of M/(2N)
///   P2P  step(M), to a neighbour or over the switch
///   M2M  switch: N F(M/N^2) + 205
///
/// Messages that meet - many-to-many on mesh and torus, two hops to the next stage - have no closed
/// form: the flit network says. On a switch those of 4 KB and more share its links: the artifact
/// takes up to 4 % longer than the closed form.
/// `artifact`: with the defects D2 (a switch's RS half duplex) and D3 (3-D tori ran both axes of RS
/// at once) of the published program.
/// Source: the public artifact of Chimera (ISCA 2025), reference runs; formulas derived of them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/names.h"
#include "base/units.h"
#include "collective/layout/pairs.h"

namespace orrery::layout {

enum class ChimeraNetwork : std::uint8_t { mesh2d, torus2d, torus3d, two_switch };
constexpr auto named_values(ChimeraNetwork) {
  return std::to_array<Named<ChimeraNetwork>>({
      {ChimeraNetwork::mesh2d, "mesh2d", "Dojo, 5 x 5: a 2 x 2 group"},
      {ChimeraNetwork::torus2d, "torus2d", "TPU v3, 4 x 4: a 2 x 2 group"},
      {ChimeraNetwork::torus3d, "torus3d", "TPU v4, 2 x 2 x 2: a 1 x 2 x 2 group"},
      {ChimeraNetwork::two_switch, "two_switch", "A100, two switches of 8: 4 of one"},
  });
}

struct ChimeraStudy {
  ChimeraNetwork network = ChimeraNetwork::torus2d;
  Pair pair = Pair::tp_sp;
  Bytes message{0};         ///< M
  std::int64_t dp = 2;      ///< d, of 4 ranks, of pairs with ep
  std::int64_t copies = 2;  ///< k, of pairs with ep
};

/// Cycles of the pair's sequence, as published or fused; nothing where messages meet.
std::optional<std::int64_t> chimera_cycles(const ChimeraStudy& study, bool fused, bool artifact);

}  // namespace orrery::layout
