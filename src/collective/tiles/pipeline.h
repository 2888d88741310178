// SPDX-License-Identifier: Apache-2.0
/// A tile-triggered product and all-reduce, run on this machine's threads (T3 without its
/// hardware).
///
/// Each of N ranks has A[m, k] and B[k, n] of its own and computes the summand A B. Rows are cut
/// into N chunks of `tiles` tiles. Rank r makes chunks r-1, r-2, ... r (modulo N) in this order, so
/// that the ring meets chunk c first at rank c+1 and last at rank c, its owner:
///
///   counter of a tile  local store + update from the rank before; of the first chunk the store
///   full               (arrived + own) goes to the next rank; of the owner's chunk it stays
///   link               a tile is there bytes / bandwidth after the link began to move it or, with
///                      no bandwidth, when the socket has moved it
///   all-gather         after every rank's reduce-scatter: it is not overlapped
///
/// Unfused, all counters of a rank's own stores advance after every rank's product instead. Both
/// ways add in the order c+1, c+2, ... c, so they are equal bit for bit, which is checked against
/// sums that one thread adds up.
///
/// Ignores:  contention for memory, near-memory sums and priorities, which are simulated.
/// Source:   Pati et al., "T3: Transparent Tracking & Triggering", ASPLOS'24 (arXiv 2401.16677).
#pragma once

#include <cstdint>

#include "base/fields.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::tiles {

struct Problem {
  std::int64_t ranks = 4;
  std::int64_t rows = 512;     ///< m, a multiple of ranks x tiles
  std::int64_t columns = 256;  ///< n
  std::int64_t inner = 256;    ///< k
  std::int64_t tiles = 4;      ///< of a chunk
  Bandwidth bandwidth{100e6};  ///< of a link; 0: as fast as sockets are
  std::int64_t repeat = 5;
  std::int64_t seed = 0;

  template <class V>
  static void fields(V&& visit) {
    visit("ranks", &Problem::ranks, "threads that compute, 2 to 16");
    visit("rows", &Problem::rows, "of each summand; a multiple of ranks x tiles");
    visit("columns", &Problem::columns, "of each summand");
    visit("inner", &Problem::inner, "length that a rank's product sums over");
    visit("tiles", &Problem::tiles, "of a chunk, each with a counter");
    visit("bandwidth", &Problem::bandwidth, "of a link; 0: as fast as sockets are");
    visit("repeat", &Problem::repeat, "runs of which the median counts");
    visit("seed", &Problem::seed, "of the numbers that are multiplied");
  }

  std::int64_t all_tiles() const { return ranks * tiles; }
  std::int64_t tile_rows() const { return rows / all_tiles(); }
  Bytes tile_bytes() const { return Bytes(4) * tile_rows() * columns; }
};

/// Holds times from a common start to the moment when the last rank is ready.
struct Measured {
  double product_s = 0;
  double reduced_s = 0;   ///< the reduce-scatter too
  double gathered_s = 0;  ///< and the all-gather
};

struct Outcome {
  bool equal = true;           ///< every element of every rank and run, bit for bit
  std::int64_t updates = 0;    ///< of all counters of a run: stores and arrivals
  std::int64_t triggered = 0;  ///< tiles that a full counter sent on
  Measured unfused;            ///< medians
  Measured overlapped;
  double hop_s = 0;         ///< of a chunk: (reduced - product) / (ranks - 1) of unfused
  double recurrence_s = 0;  ///< reduced_s of overlapped as the recurrence has it
};

/// Returns the recurrence of collective/tile_ring.h by tiles, in seconds: tile t of ring step k
/// leaves when it is made, has arrived and the link is free, and takes hop / tiles.
double recurrence(double product, double hop, std::int64_t ranks, std::int64_t tiles);

/// Mistakes: values outside of their ranges, by field; sockets or threads that cannot be had.
Result<Outcome> run(const Problem& problem);

}  // namespace orrery::tiles
