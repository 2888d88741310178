// SPDX-License-Identifier: Apache-2.0
#include "collective/algorithm.h"
#include "collective/chunked.h"

namespace orrery::collective {

AlgorithmRow themis_row() {
  return {.value = CollectiveAlgorithm::themis,
          .name = "themis",
          .sentence = "hierarchical in chunks, each in the order that keeps all dimensions busy",
          .plan =
              [](graph::CollectiveKind kind, Bytes size, const std::vector<Extent>& extents,
                 const machine::Machine& machine) {
                return plan_chunked(kind, size, extents, {}, machine);
              },
          .performs = reorders,
          .chunks = ChunkScheduler::themis,
          .left_out = library_is_flat};
}

}  // namespace orrery::collective
