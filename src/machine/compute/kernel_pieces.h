// SPDX-License-Identifier: Apache-2.0
/// Computes times of a kernel that runs in pieces (graph::Operator::pieces), which compute_model.h
/// returns.
#pragma once

#include "machine/compute/compute_model.h"

namespace orrery::compute {

/// Returns the piece's part of the whole kernel's times, beside communication no less than alone.
/// Whose tiles engines move (Operator::tracking) takes slowed_by_engines times as long, beside
/// communication no more. Requires op.pieces > 1.
KernelTime piece_time(const graph::Operator& op, const Device& device);
/// Returns piece_time(op, device).alone at this share of the tables' rate, at a third of the work.
Time lone_piece_time(const graph::Operator& op, const Device& device, double clock);

/// Returns the time that all pieces take together, as piece_time sums up. Requires op.pieces > 1.
KernelTime time_in_pieces(const graph::Operator& op, const Device& device);

/// Memory traffic of a product and of the reduce-scatter that moves its tiles, on one of N ranks;
/// c = V / N is a chunk of the result's V bytes.
struct TileTraffic {
  double operands = 0;  ///< A and B, read from memory Tracker::rereads times
  double result = 0;    ///< V
  double chunk = 0;     ///< c
  std::int64_t ranks = 1;

  /// Returns g: what the product moves.
  double product() const { return operands + result; }
  /// Returns (2N - 3) c: what engines read and update beside it.
  double moved() const { return static_cast<double>(2 * ranks - 3) * chunk; }
  double reads_unfused() const { return static_cast<double>(2 * ranks - 1) * chunk; }
  double reads_tracked() const { return static_cast<double>(ranks - 2) * chunk; }
  double writes_unfused() const { return static_cast<double>(2 * ranks) * chunk; }
  double writes_tracked() const { return static_cast<double>(2 * ranks - 2) * chunk; }
};
/// Returns the traffic of the product (gemm or grouped_gemm) `op`, whole or a piece. Requires ranks
/// of 2 or more.
TileTraffic tile_traffic(const graph::Operator& op, std::int64_t ranks, const Device& device);

/// Returns 1 + kappa moved / (product + moved) of tile_traffic for tracking `shared`, else 1. A
/// device without a tracker is as one whose file states an empty one. Source: docs/models/t3.md.
double slowed_by_engines(const graph::Operator& op, const Device& device);

}  // namespace orrery::compute
