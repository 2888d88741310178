// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "neural/network.h"
#include "neural/weights.h"

namespace orrery::neural {

struct Training {
  std::int64_t epochs = 5;
  std::size_t minibatch = 32;
  double rate = 0.05;  ///< of the first step; falls to 0 along half a cosine
  double momentum = 0.9;
  std::uint64_t seed = 1;  ///< of the order of samples
};

/// Trains by stochastic gradient descent on the mean cross-entropy of minibatches, batch norms with
/// the statistics of the minibatch. The last samples of an epoch that fill no minibatch are left
/// out. Requires a minibatch that is no larger than the samples.
void train(const Network& network, std::vector<double>& weights, const Samples& samples,
           const Training& training);

/// The share of samples whose class the network names; batch norms with the statistics of all of
/// them.
double accuracy_of(const Network& network, const std::vector<double>& weights,
                   const Samples& samples);

}  // namespace orrery::neural
