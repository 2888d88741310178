// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"

namespace orrery::collective {

AlgorithmRow hierarchical_row() {
  return {.value = CollectiveAlgorithm::hierarchical,
          .name = "hierarchical",
          .sentence = "dimension by dimension, auto in each",
          .by_dimension =
              [](graph::CollectiveKind kind) { return kind != graph::CollectiveKind::send_recv; },
          .chunks = ChunkScheduler::natural,
          .left_out = library_is_flat};
}

}  // namespace orrery::collective
