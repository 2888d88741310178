// SPDX-License-Identifier: Apache-2.0
/// Time of a product and a ring reduce-scatter that follows its tiles (T3).
///
/// The product runs in N pieces, one after the other, N the ranks of the ring. As soon as piece k
/// is there (k = 0 .. N-2), and what arrived in ring step k-1 with it, ring step k moves an N-th of
/// the result to the next rank. The last piece stays:
///
///   made(k)      when piece k ends: floor((k+1) G / N), if nothing slows it
///   arrive(0)    0
///   arrive(k+1)  max(made(k), arrive(k)) + hop,     hop = latency + V / N / bandwidth
///   overlapped   max(arrive(N-1), made(N-1))
///
/// While a hop is in flight a piece takes `slowed` times as long (compute units that kernels which
/// move the tiles take from it).
///
/// It is at least max(G, G/N + (N-1) hop): a piece is always exposed before the ring starts. An
/// all-reduce is this and an all-gather after it, which nothing hides.
///
/// Ignores:  that pieces end in waves of tiles; what the host needs to issue hops.
/// Source:   Pati et al., "T3: Transparent Tracking & Triggering", ASPLOS'24 (arXiv 2401.16677).
#pragma once

#include <cstdint>

#include "base/units.h"

namespace orrery::collective {

struct TileRing {
  Time product{0};         ///< G: all pieces, alone
  Time hop{0};             ///< of one ring step, alone
  std::int64_t ranks = 2;  ///< N >= 2
  double slowed = 1;       ///< >= 1
};

Time overlapped_time(const TileRing& ring);

}  // namespace orrery::collective
