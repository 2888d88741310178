// SPDX-License-Identifier: Apache-2.0
/// Forward and backward passes of a network over a batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neural/gradients.h"
#include "neural/network.h"

namespace orrery::neural {

/// Says how samples of a batch meet in batch norms, the one layer in which they do.
enum class Arithmetic : std::uint8_t {
  alone,     ///< each sample has its own statistics, as a batch of one in training: passes over a
             ///< batch equal passes over its samples bit for bit
  together,  ///< statistics of the batch: training
  flow,      ///< norms, tanh and gelu pass their input on: synflow's network
};

/// Activations are what a forward pass leaves: by layer, [samples, size of its output], and what
/// backward needs.
struct Activations {
  std::size_t samples = 0;
  std::vector<double> input;
  std::vector<std::vector<double>> outputs;
  std::vector<std::vector<double>> saved;

  const std::vector<double>& logits() const { return outputs.back(); }
};

/// Runs the network forward. `input`: [samples, size of the network's input]; `weights`:
/// Network::weights of them.
Activations forward(const Network& network, std::span<const double> weights,
                    std::vector<double> input, Arithmetic arithmetic);

/// Hands `gradients` (none: nobody wants them) those of all parameters, last layer first, and
/// returns those by the input. `logit_gradients`: [samples, classes] of the loss.
std::vector<double> backward(const Network& network, std::span<const double> weights,
                             Activations& activations, std::span<const double> logit_gradients,
                             Gradients* gradients, Arithmetic arithmetic);

/// The cross-entropy of softmax and its gradient by the logits, softmax minus one-hot, of each
/// sample alone: not divided by their number.
struct Loss {
  double sum = 0;
  std::size_t right = 0;  ///< samples whose greatest logit is their label's, the first of equals
  std::vector<double> logit_gradients;
};
Loss cross_entropy(const Network& network, const std::vector<double>& logits,
                   std::span<const int> labels);

}  // namespace orrery::neural
