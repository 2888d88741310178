// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"

namespace orrery::collective {

/// An all_to_all of tokens, each for `copies` experts chosen at random (Node::copies): over n nodes
/// n (1 - (1 - 1/n)^copies) of them have one of its experts on average, and as many copies cross
/// between nodes; inside the nodes every copy moves. `extents`: of two dimensions or more, the
/// innermost is the node; `plan`: plan_collective, or plan_messages.
/// Source: DeepSeek-AI 2024 (node-limited routing); the expectation is derived.
std::vector<CollectivePhase> plan_token_exchange(decltype(plan_collective)& plan, Bytes size,
                                                 std::int64_t copies,
                                                 const std::vector<Extent>& extents,
                                                 CollectiveAlgorithm algorithm,
                                                 const machine::Machine& machine);

}  // namespace orrery::collective
