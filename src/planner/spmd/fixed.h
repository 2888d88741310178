// SPDX-License-Identifier: Apache-2.0
/// Well-known strategies as restrictions of the search: forms of the parameters are given,
/// everything else is free.
///
///                          expert weights    other parameters
///   data_parallel          replicate         replicate         einsums on the batch only
///   fsdp                   gather_0          gather_0          einsums on the batch only
///   expert_parallel        gather_0          replicate
///   expert_parallel_fsdp   gather_0          gather_0
///
/// Inputs are sliced on the batch; positions and masks that are buffers are replicated; the class
/// token and learned positions are free. Expert weights are parameters named *_w1 and *_w2.
/// Source: the comparisons of HiDup (Zhang et al., SoCC'22).
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"
#include "planner/spmd/compiled_graph.h"

namespace orrery::spmd {

enum class FixedStrategy : std::uint8_t {
  data_parallel,
  fsdp,
  expert_parallel,
  expert_parallel_fsdp
};
constexpr auto named_values(FixedStrategy) {
  return std::to_array<Named<FixedStrategy>>({
      {FixedStrategy::data_parallel, "data_parallel", "every device has all parameters"},
      {FixedStrategy::fsdp, "fsdp", "parameters are sliced and gathered for use"},
      {FixedStrategy::expert_parallel, "expert_parallel",
       "experts are sliced, other parameters everywhere"},
      {FixedStrategy::expert_parallel_fsdp, "expert_parallel_fsdp",
       "experts are sliced, other parameters sliced and gathered for use"},
  });
}

/// Returns what the strategy allows.
Restriction restriction(FixedStrategy strategy);

}  // namespace orrery::spmd
