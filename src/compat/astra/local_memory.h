// SPDX-License-Identifier: Apache-2.0
/// track-local-mem: how long the tensors of ranks live, and the most bytes that live at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compat/astra/run.h"
#include "workload/chakra/footprint.h"

namespace orrery::astra {

/// LocalMemory is that of the lowest rank of a class.
struct LocalMemory {
  std::int64_t rank = 0;
  chakra::TensorUses tensors;
  chakra::Footprint footprint;
};

/// Returns the memory of each class; empty when the traces are not `.et` files or name no tensors.
/// Reads the trace files of `prefix` again. Mistakes: those of load_tensors(). Requires a result
/// with node_times.
Result<std::vector<LocalMemory>> local_memory(const std::string& prefix, const RunInput& input,
                                              const RunResult& result);

}  // namespace orrery::astra
