// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/local_memory.h"

#include <cassert>
#include <utility>

#include "workload/chakra/trace_files.h"

namespace orrery::astra {

Result<std::vector<LocalMemory>> local_memory(const std::string& prefix, const RunInput& input,
                                              const RunResult& result) {
  assert(result.node_times.size() == result.classes.size() && "node_times were asked for");
  const auto files = chakra::find_trace_files(prefix);
  if (!files) {
    return fail(files.error());
  }
  std::vector<LocalMemory> found;
  if (files->json()) {
    return found;
  }
  bool any = false;
  for (std::size_t c = 0; c < result.classes.size(); ++c) {
    const std::int64_t rank = result.classes[c].rank;
    auto tensors = chakra::load_tensors(files->of(rank));
    if (!tensors) {
      return fail(std::move(tensors.error()));
    }
    any = any || !tensors->tensors.empty();
    auto footprint = chakra::footprint(input.traces.program(rank), *tensors, result.node_times[c]);
    if (!footprint) {
      return fail(std::move(footprint.error()));
    }
    found.push_back({rank, std::move(*tensors), std::move(*footprint)});
  }
  if (!any) {
    found.clear();
  }
  return found;
}

}  // namespace orrery::astra
