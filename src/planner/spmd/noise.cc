// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/noise.h"

#include <random>

namespace orrery::spmd {

NoisyInputs with_noise(const OperatorGraph& graph, const Profile& profile, const Noise& noise) {
  std::mt19937_64 random(noise.seed);
  // Not std::uniform_real_distribution, whose numbers depend on the library.
  const auto factor = [&] {
    constexpr double kTwoTo53 = 9007199254740992.0;
    const double uniform = static_cast<double>(random() >> 11) / kTwoTo53;
    return 1 + noise.share * (2 * uniform - 1);
  };
  NoisyInputs noisy{graph, profile};
  for (Node& node : noisy.graph.nodes) {
    node.flops = node.flops * factor();
  }
  noisy.profile.device_flops = profile.device_flops * factor();
  for (Bandwidth Profile::*bandwidth : {&Profile::all_gather, &Profile::all_reduce,
                                        &Profile::reduce_scatter, &Profile::all_to_all}) {
    noisy.profile.*bandwidth = profile.*bandwidth * factor();
  }
  return noisy;
}

}  // namespace orrery::spmd
