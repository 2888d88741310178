// SPDX-License-Identifier: Apache-2.0
/// A product and the sum of its result where the sum follows the product's tiles.
#include <algorithm>

#include "collective/tile_ring.h"
#include "machine/compute/kernel_pieces.h"
#include "serving/step/step_cost.h"

namespace orrery::step {

Time StepCost::overlapped(graph::Operator product, std::int64_t tokens) const {
  using plan::TensorOverlap;
  const std::int64_t tp = options_.degrees.tp;
  const TensorOverlap how = options_.overlap_tensor;
  if (how == TensorOverlap::none || tp == 1 || product.kind != graph::OperatorKind::gemm) {
    return Time::max();
  }
  product.pieces = static_cast<std::int32_t>(tp);
  product.tracking = how == TensorOverlap::tracked       ? graph::Tracking::shared
                     : how == TensorOverlap::tracked_mca ? graph::Tracking::first
                                                         : graph::Tracking::none;
  const compute::KernelTime time = compute::time_in_pieces(product, machine_.device);
  const Bytes bytes = summed_bytes(tokens);
  collective::TileRing ring{.product = time.alone, .ranks = tp};
  ring.hop = moved(graph::CollectiveKind::send_recv, bytes / tp, tensor_group_);
  if (how == TensorOverlap::cu_split && time.alone > Time(0)) {
    ring.slowed = time.beside_collective / time.alone;
  }
  return collective::overlapped_time(ring) +
         moved(graph::CollectiveKind::all_gather, bytes, tensor_group_, options_.all_reduce);
}

}  // namespace orrery::step
