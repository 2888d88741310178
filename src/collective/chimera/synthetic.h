// SPDX-License-Identifier: Apache-2.0
/// The published pairs on Chimera's flit networks, cycle by cycle: groups of four ranks (2 x 2, or
/// a line on a switch), the next stage beside the first.
///
///   pair    base                        fused
///   tp+sp   AR(M)                       RS(M)
///   tp+pp   AR(M), M2M(M), AG(M)        RS(M), M2M(M), AG(M)
///   tp+ep   AR(M) per dp group, A2A     RS(M) per dp group, A2A
///   pp+ep   P2P(M), A2A at the target   M2M(Mkd)
///   sp+pp   AG(M), P2P(M)               M2M(M)
///   sp+ep   AG(M) per dp group, A2A     A2A
///
/// with an A2A of Mkd. Steps in which no two messages meet take the closed form F(B) + 109 to a
/// neighbour, F(B) + 205 over a switch (flit/fabric.h); others run flit by flit.
/// Source: the public artifact of Chimera (ISCA 2025).
#pragma once

#include "collective/chimera/steps.h"
#include "collective/layout/pairs.h"

namespace orrery::chimera {

struct Synthetic {
  Topology topology = Topology::torus2d;
  layout::Pair pair = layout::Pair::tp_sp;
  Bytes message{0};        ///< M
  std::int32_t dp = 2;     ///< d: 1, 2 or 4, of pairs with ep
  std::int64_t top_k = 2;  ///< k, of pairs with ep
};

/// Runs the pair's sequence. `artifact`: with its defects (steps.h).
flit::LoopResult run_synthetic(const Synthetic& study, bool fused, bool artifact,
                               bool shortcuts = true);

}  // namespace orrery::chimera
