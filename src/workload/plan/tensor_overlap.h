// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "machine/machine.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

constexpr bool is_tracked(TensorOverlap how) {
  return how == TensorOverlap::tracked || how == TensorOverlap::tracked_mca;
}

/// Returns whether the sum is a ring whose steps follow the product's tiles.
constexpr bool follows_tiles(TensorOverlap how) {
  return how != TensorOverlap::none && how != TensorOverlap::chunked;
}

/// Returns the pieces of a product and of the collective beside it: tp_chunks, and with `chunked`
/// tp unless tp_chunks says otherwise. 1: both are whole.
constexpr std::int64_t tensor_pieces(const Plan& plan) {
  const bool all_ranks = plan.overlap_tensor == TensorOverlap::chunked && plan.tp_chunks == 1;
  return all_ranks ? plan.tp : plan.tp_chunks;
}

/// Returns the sentence that results with `tracked` and `tracked_mca` carry, as no device that is
/// sold has a tracker: "hypothetical hardware: ..."; "" for others.
std::string hypothetical_hardware(TensorOverlap how, const machine::Machine& machine);

}  // namespace orrery::plan
