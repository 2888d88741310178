// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"

namespace orrery::collective {

/// Of n places (nodes, ranks), those that have one of `copies` experts chosen at random, on
/// average:
///
///   n (1 - (1 - 1/n)^copies)
double places_reached(double places, double copies);

/// An all_to_all of tokens, each for `copies` experts chosen at random (Node::copies): as many
/// copies of one cross between nodes as nodes have one of its experts, and inside the nodes as many
/// move as ranks have one. `extents`: the innermost is the node; `plan`: plan_collective, or
/// plan_messages. Source: DeepSeek-AI 2024 (node-limited routing) and DeepEP's is_token_in_rank, by
/// which a rank gets a token once; the expectation is derived.
std::vector<CollectivePhase> plan_token_exchange(decltype(plan_collective)& plan, Bytes size,
                                                 std::int64_t copies,
                                                 const std::vector<Extent>& extents,
                                                 CollectiveAlgorithm algorithm,
                                                 const machine::Machine& machine);

}  // namespace orrery::collective
