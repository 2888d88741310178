// SPDX-License-Identifier: Apache-2.0
/// Products whose results are summed over tp, and the same with a sum that follows their tiles
/// (plan field overlap_tensor).
///
/// A product of V bytes a rank and the reduce-scatter over N ranks that directly follows it become
/// N pieces of the product (pieces.h) and N-1 ring steps of V / N, the k-th after piece k:
///
///   cu_split      kernels move the chunks: they take units and bandwidth from the product, and the
///                 host dispatches each
///   tracked       engines do; the product takes 1 + kappa c / (g + c) times as long
///                 (compute/kernel_pieces.h), whatever else moves beside it
///   tracked_mca   engines do; memory serves the product first, which takes as long as alone
///
/// An all-reduce becomes this and an all-gather after it, which nothing hides. Who reads the sum
/// waits for the last ring step and, being a kernel or something that waits for the kernels before
/// it, for the last piece.
///
/// Left as they are: sums of what is no product or that another kernel lies between; products in
/// several launches; sums over expert-tensor ranks, before which rows are permuted.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/parallel/draft.h"

namespace orrery::parallel {

/// Returns whether `sum` adds up over tp the result of `product`, alone in its step and in one
/// launch.
bool sums_product(const Step& product, const Step& sum);

/// Returns the steps with each such pair in tiles. Requires ranks >= 2.
std::vector<Step> in_tiles(const std::vector<Step>& steps, plan::TensorOverlap how,
                           std::int64_t ranks);

/// A product and the sum that follows it, as they are without overlap.
struct SummedProduct {
  Step product;
  Step sum;
  plan::BlockKind kind = plan::kFirstLayerBlock;
};
/// Returns the pairs of every kind of block, forward before backward, without recomputed ones.
/// Requires a checked plan.
std::vector<SummedProduct> summed_products(const zoo::Model& model, const plan::Plan& plan);

}  // namespace orrery::parallel
