// SPDX-License-Identifier: Apache-2.0
#include "neural/train.h"

#include <cmath>
#include <numbers>

#include "neural/execute.h"

namespace orrery::neural {
namespace {

/// Samples [first, first + count) of the order in which draw_from has put them.
Samples part_of(const Samples& samples, std::size_t first, std::size_t count) {
  const std::size_t size = samples.values.size() / samples.count();
  const auto value = [&](std::size_t i) {
    return samples.values.begin() + static_cast<std::ptrdiff_t>(i * size);
  };
  const auto label = samples.labels.begin() + static_cast<std::ptrdiff_t>(first);
  return {{value(first), value(first + count)},
          {label, label + static_cast<std::ptrdiff_t>(count)}};
}

}  // namespace

void train(const Network& network, std::vector<double>& weights, const Samples& samples,
           const Training& training) {
  const std::size_t steps = samples.count() / training.minibatch;
  const double all = static_cast<double>(steps) * static_cast<double>(training.epochs);
  std::vector<double> velocity(weights.size());
  double done = 0;
  for (std::int64_t epoch = 0; epoch < training.epochs; ++epoch) {
    const Samples shuffled =
        draw_from(samples, samples.count(), training.seed + static_cast<std::uint64_t>(epoch));
    for (std::size_t step = 0; step < steps; ++step) {
      Samples batch = part_of(shuffled, step * training.minibatch, training.minibatch);
      Activations activations =
          forward(network, weights, std::move(batch.values), Arithmetic::together);
      const Loss loss = cross_entropy(network, activations.logits(), batch.labels);
      SumGradients gradients(network);
      backward(network, weights, activations, loss.logit_gradients, &gradients,
               Arithmetic::together);
      const double rate = training.rate * (1 + std::cos(std::numbers::pi * done / all)) / 2;
      const double share = 1 / static_cast<double>(training.minibatch);
      for (std::size_t k = 0; k < weights.size(); ++k) {
        velocity[k] = training.momentum * velocity[k] + gradients.sum()[k] * share;
        weights[k] -= rate * velocity[k];
      }
      done += 1;
    }
  }
}

double accuracy_of(const Network& network, const std::vector<double>& weights,
                   const Samples& samples) {
  const Activations activations = forward(network, weights, samples.values, Arithmetic::together);
  const Loss loss = cross_entropy(network, activations.logits(), samples.labels);
  return static_cast<double>(loss.right) / static_cast<double>(samples.count());
}

}  // namespace orrery::neural
