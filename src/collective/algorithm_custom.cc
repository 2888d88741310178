// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "collective/algorithm.h"

namespace orrery::collective {

PricedPhase price_custom(const PhaseRequest& request, const AlgorithmRow& row) {
  const topology::NetworkDimension& first = dimension_of(request.extents.front(), request.machine);
  const auto& kernels = first.one_shot.empty() ? first.two_shot : first.one_shot;
  const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                   [&](const auto& each) { return each.name == row.launch; });
  if (request.kind != graph::CollectiveKind::all_reduce || request.extents.size() > 1 ||
      kernel == kernels.end()) {
    return {};
  }
  PricedPhase best = price_algorithm(request, CollectiveAlgorithm::automatic);
  add_launching(request, *kernel, best);
  for (const auto shot : {CollectiveAlgorithm::one_shot, CollectiveAlgorithm::two_shot}) {
    best.keep_faster(price_counts(request, row_of(shot), row.launch));
  }
  return best;
}

AlgorithmRow custom_row() {
  return {.value = CollectiveAlgorithm::custom,
          .name = "custom",
          .sentence = "vLLM in CUDA graphs: the fastest of one_shot, two_shot and auto",
          .launch = "graph",
          .price = price_custom,
          .left_out = serving_kernel};
}

}  // namespace orrery::collective
