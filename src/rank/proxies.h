// SPDX-License-Identifier: Apache-2.0
/// A proxy is what an untrained network says of how well it will train.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/names.h"
#include "neural/network.h"
#include "neural/weights.h"

namespace orrery::rank {

enum class Proxy : std::uint8_t {
  gradsign_sum,
  gradsign_mean,
  gradient_norm,
  synflow,
  jacobian_covariance,
  parameters,
  flops
};
constexpr auto named_values(Proxy) {
  return std::to_array<Named<Proxy>>({
      {Proxy::gradsign_sum, "gradsign_sum",
       "sum over weights of |sum over samples of the sign of the sample's gradient|"},
      {Proxy::gradsign_mean, "gradsign_mean", "the same, mean over weights"},
      {Proxy::gradient_norm, "gradient_norm", "sum over matrices of the norm of the gradient"},
      {Proxy::synflow, "synflow", "sum over weights of |weight x gradient| of the flow of ones"},
      {Proxy::jacobian_covariance, "jacobian_covariance",
       "how little the samples' gradients by the input correlate"},
      {Proxy::parameters, "parameters", "number of parameters: the baseline"},
      {Proxy::flops, "flops", "FLOPs of one sample's forward pass"},
  });
}
inline constexpr std::size_t kProxies = kNames<Proxy>.size();

/// Scores by Proxy, each higher for a better network; nothing where one is undefined.
using Scores = std::vector<std::optional<double>>;

/// Scores of one network at one set of weights and one minibatch of n samples, loss cross-entropy.
/// k runs over the weights of matrices (convolutions, linear layers, attention), not over biases
/// and norms.
///
///   gradsign_sum         sum_k | sum_i sign(d loss(x_i, y_i) / d w_k) |, within [0, n k]; sign(0)
///                        and the sign of what is no number are 0
///   gradsign_mean        that over the number of weights
///   gradient_norm        sum over matrices of || d mean loss / d W ||_2
///   synflow              R = sum of the outputs for an input of ones, weights by magnitude, norms,
///                        tanh and gelu left out: sum_k |w_k dR/dw_k|
///   jacobian_covariance  C: correlations of the n gradients of the sum of outputs by the input;
///                        -(log det(C + e I) + tr (C + e I)^-1), e = 1e-5, which is minus the sum
///                        of log v + 1/v over the eigenvalues v. Nothing where a gradient is
///                        constant, as of a network whose output no input reaches
///
/// Every sample has its own statistics in batch norms, as a batch of one in training. Statistics of
/// the batch, or frozen ones, give other numbers.
/// Sources: Zhang & Jia, GradSign, ICLR 2022; Abdelfattah et al., ICLR 2021 (gradient norm);
/// Tanaka et al., NeurIPS 2020 (synflow); Mellor et al., arXiv 2006.04647v1 (Jacobian covariance).
Scores scores_of(const neural::Network& network, const std::vector<double>& weights,
                 const neural::Samples& samples);

}  // namespace orrery::rank
