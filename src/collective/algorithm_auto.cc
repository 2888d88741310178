// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "collective/algorithm.h"
#include "collective/flat.h"

namespace orrery::collective {
namespace {

/// Over two or three nodes a tree's busiest port carries less than a ring's. Measured all-reduces
/// do not show it: 64 MiB over two nodes of 1, 2 and 4 A100 take 1.33, 1.32 and 1.39 times the
/// ring's port time at the bandwidth of send_recv between the same nodes, but would be 1.3, 1.8
/// and 2.3 times the tree's (microsoft/vidur@7d47513363ec, a100_dgx). So `auto` gives a tree the
/// ring's port time at most, and takes it for its few steps only.
void charge_like_ring(PricedPhase& tree, const PricedPhase& ring) {
  const double slower = ring.longest / kTreeEfficiency / tree.longest;
  if (slower > 1 && std::isfinite(slower)) {
    for (LinkSeconds& busy : tree.busy) {
      busy = busy.times(slower);
    }
    tree.longest *= slower;
  }
}

/// Messages from rank to rank. NCCL's are all in flight at once: where that costs a port bandwidth
/// it has no exchanges in turn.
PricedPhase price_exchange(const PhaseRequest& request) {
  PricedPhase best = price_algorithm(request, CollectiveAlgorithm::direct);
  if (request.kind == graph::CollectiveKind::all_to_all) {
    if (!peers_count(request.extents, request.machine)) {
      best.keep_faster(price_algorithm(request, CollectiveAlgorithm::pairwise));
    }
    best.keep_faster(price_algorithm(request, CollectiveAlgorithm::rail));
  }
  return best;
}

/// Inside a node NCCL's tree is a chain of as many steps as the ring, so trees are only tried for
/// groups that leave the innermost dimension.
PricedPhase price_automatic(const PhaseRequest& request, const AlgorithmRow& /*row*/) {
  const bool leaves = request.extents.back().dimension > 0;
  const bool sums = request.kind == graph::CollectiveKind::all_reduce;
  if (exchanges(request.kind)) {
    return price_exchange(request);
  }
  const PricedPhase ring = price_algorithm(request, CollectiveAlgorithm::ring);
  PricedPhase best = ring;
  if (sums) {
    PricedPhase added = price_algorithm(request, CollectiveAlgorithm::in_switch);
    if (request.extents.size() > 1) {
      charge_like_ring(added, ring);
    }
    best.keep_faster(added);
  }
  if (leaves && (sums || request.kind == graph::CollectiveKind::broadcast)) {
    PricedPhase tree = price_algorithm(request, CollectiveAlgorithm::double_binary_tree);
    if (sums) {
      charge_like_ring(tree, ring);
    }
    best.keep_faster(tree);
  }
  return best;
}

}  // namespace

AlgorithmRow auto_row() {
  return {.value = CollectiveAlgorithm::automatic,
          .name = "auto",
          .sentence = "the fastest of what NCCL has: ring, tree, in_switch; direct, pairwise, rail",
          .price = price_automatic};
}

}  // namespace orrery::collective
