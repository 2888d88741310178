// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {

const std::vector<AlgorithmRow>& algorithms() {
  static const std::vector<AlgorithmRow> rows = in_listed_order(algorithm_files());
  return rows;
}

const std::vector<Named<CollectiveAlgorithm>>& listed_values(CollectiveAlgorithm /*any*/) {
  static const std::vector<Named<CollectiveAlgorithm>> names = names_of_rows(algorithms());
  return names;
}

}  // namespace orrery::collective
