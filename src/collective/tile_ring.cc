// SPDX-License-Identifier: Apache-2.0
#include "collective/tile_ring.h"

#include <algorithm>

#include "graph/operator.h"

namespace orrery::collective {
namespace {

/// Returns when a piece ends that begins at `begin` and takes `work` alone, if a hop is in flight
/// until `busy`.
Time end_of_piece(Time begin, Time work, Time busy, double slowed) {
  if (slowed <= 1 || busy <= begin) {
    return begin + work;
  }
  const Time whole = work * slowed;
  if (begin + whole <= busy) {
    return begin + whole;
  }
  return busy + work - (busy - begin) * (1 / slowed);
}

}  // namespace

Time overlapped_time(const TileRing& ring) {
  Time made{0};
  Time arrived{0};
  for (std::int64_t k = 0; k < ring.ranks; ++k) {
    // Hop k-1 is in flight when piece k begins, or begins later than piece k ends: hops wait for
    // each other, so none begins while a piece runs but at its begin or at the end of another hop.
    made = end_of_piece(made, graph::part_of(ring.product, k, ring.ranks), arrived, ring.slowed);
    if (k + 1 < ring.ranks) {
      arrived = std::max(made, arrived) + ring.hop;
    }
  }
  return std::max(made, arrived);
}

}  // namespace orrery::collective
