// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "graph/token_route.h"

namespace orrery::collective {

/// Returns, of n places (nodes, ranks) with equally many experts, how many have one of a token's k,
/// on average; with c of G groups chosen first, of which a place has g = G / n (where that is
/// broken, some the next lower and some the next higher number):
///
///   n (1 - (1 - 1/n)^k)                                        all groups
///   r (1 - (1 - 1/r)^k),  r = n c / G                          n >= G
///   n (1 - sum over x of P(x) (1 - x/c)^k)                     n < G
///
///   P(x)   of c groups drawn from G, x are among the g of the place (hypergeometric)
double places_reached(double places, const graph::TokenRoute& route);

/// Plans an all_to_all of tokens (Node::route): as many copies of one cross between nodes as nodes
/// have one of its experts, and inside the nodes as many move as ranks have one. `extents`: the
/// innermost is the node; `plan`: plan_collective, or plan_messages. Source: DeepSeek-AI 2024
/// (node-limited routing) and DeepEP's is_token_in_rank, by which a rank gets a token once; the
/// expectation is derived.
std::vector<CollectivePhase> plan_token_exchange(decltype(plan_collective)& plan, Bytes size,
                                                 const graph::TokenRoute& route,
                                                 const std::vector<Extent>& extents,
                                                 CollectiveAlgorithm algorithm,
                                                 const machine::Machine& machine);

}  // namespace orrery::collective
