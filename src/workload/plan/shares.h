// SPDX-License-Identifier: Apache-2.0
/// Replicas that compute different shares of a batch, and devices that differ between ranks.
///
///   batch_shares   microbatches of every replica in the order of dp, "12*8,4*8": the first eight
///                  have 12 each, the others 4. Stages and other degrees are those of all replicas;
///                  gradients are summed once all have done their shares
///   parts          which parts of a machine of several sorts of devices (machine/device_groups.h)
///                  ranks fill, in which order
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/axes.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

/// Returns the microbatches of every replica. "" and "auto": as many each. Mistakes (field
/// "batch_shares"): what is no list, other replicas than dp, a replica without any, another sum
/// than the batch.
Result<std::vector<std::int64_t>> replica_microbatches(const Plan& plan);
/// Returns "12*8,4*8" of such numbers; "" where all are the same.
std::string to_batch_shares(const std::vector<std::int64_t>& microbatches);

/// Returns the plan of replicas that all have as many microbatches.
Plan with_microbatches(Plan plan, std::int64_t microbatches);

/// Ranks that do the same on devices of the same sort, stage by stage.
struct RankClass {
  std::int64_t microbatches = 1;
  std::vector<std::size_t> parts;  ///< by stage: of the machine

  friend auto operator<=>(const RankClass&, const RankClass&) = default;
};

/// Returns the distinct ones of all ranks; one of a machine without parts and a plan without
/// shares. Ranks that the machine has not would lie in its last part. Requires a checked plan.
std::vector<RankClass> rank_classes(const Plan& plan, const machine::Machine& machine);

/// Returns which digit of the rank number counts replicas; of size 1 without any.
graph::Digit replica_digit(const RankLayout& layout);

}  // namespace orrery::plan
