// SPDX-License-Identifier: Apache-2.0
/// Noise shows what a search with wrong inputs costs: it looks for the best with noisy ones, and
/// pays the true. Source: HiDup (Zhang et al., SoCC'22), section VI.E and its Table I.
#pragma once

#include <cstdint>

#include "planner/spmd/operator_graph.h"
#include "planner/spmd/profile.h"

namespace orrery::spmd {

struct Noise {
  double share = 0;  ///< in [0, 1)
  std::uint64_t seed = 1;
};

struct NoisyInputs {
  OperatorGraph graph;
  Profile profile;
};

/// Returns each operator's flops, the rate and the four bandwidths times 1 + U(-share, share),
/// independent, in this order, from a 64-bit Mersenne twister.
NoisyInputs with_noise(const OperatorGraph& graph, const Profile& profile, const Noise& noise);

}  // namespace orrery::spmd
