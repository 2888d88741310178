// SPDX-License-Identifier: Apache-2.0
#include "rank/proxies.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "neural/execute.h"
#include "neural/gradients.h"

namespace orrery::rank {
namespace {

using neural::Arithmetic;
using neural::Network;
using neural::Parameter;

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// BothGradients are those of the loss that are asked for, of one backward pass.
class BothGradients final : public neural::Gradients {
 public:
  explicit BothGradients(const Network& network) : signs(network), sums(network) {}
  void product(const neural::WeightProduct& product) override {
    signs.product(product);
    sums.product(product);
  }
  void vector(const Parameter&, const double*) override {}

  neural::SignGradients signs;
  neural::SumGradients sums;
};

void score_loss(const Network& network, const std::vector<double>& weights,
                const neural::Samples& samples, Scores& scores) {
  neural::Activations activations =
      neural::forward(network, weights, samples.values, Arithmetic::alone);
  const neural::Loss loss = neural::cross_entropy(network, activations.logits(), samples.labels);
  BothGradients gradients(network);
  neural::backward(network, weights, activations, loss.logit_gradients, &gradients,
                   Arithmetic::alone);
  double agreement = 0;
  double counted = 0;
  double norms = 0;
  for (const Parameter& parameter : network.parameters) {
    if (!parameter.matrix) {
      continue;
    }
    double square = 0;
    for (std::size_t k = parameter.offset; k < parameter.offset + parameter.size(); ++k) {
      agreement += std::abs(gradients.signs.sum()[k]);
      square += gradients.sums.sum()[k] * gradients.sums.sum()[k];
    }
    counted += static_cast<double>(parameter.size());
    norms += std::sqrt(square) / static_cast<double>(samples.count());
  }
  scores[static_cast<std::size_t>(Proxy::gradsign_sum)] = agreement;
  if (counted > 0) {
    scores[static_cast<std::size_t>(Proxy::gradsign_mean)] = agreement / counted;
  }
  scores[static_cast<std::size_t>(Proxy::gradient_norm)] = finite(norms);
}

std::optional<double> synflow(const Network& network, std::vector<double> weights) {
  for (double& weight : weights) {
    weight = std::abs(weight);
  }
  neural::Activations activations = neural::forward(
      network, weights, std::vector<double>(network.input.size(), 1.0), Arithmetic::flow);
  const std::vector<double> ones(static_cast<std::size_t>(network.classes), 1.0);
  neural::SumGradients gradients(network);
  neural::backward(network, weights, activations, ones, &gradients, Arithmetic::flow);
  double sum = 0;
  for (const Parameter& parameter : network.parameters) {
    for (std::size_t k = parameter.offset;
         parameter.matrix && k < parameter.offset + parameter.size(); ++k) {
      sum += std::abs(weights[k] * gradients.sum()[k]);
    }
  }
  return finite(sum);
}

/// log det M + tr M^-1 of a symmetric positive definite [n, n] matrix, by its Cholesky factor L:
/// the trace is the sum of the squares of L^-1. Nothing where M is not positive definite.
std::optional<double> log_det_and_inverse_trace(std::vector<double> m, std::size_t n) {
  double log_det = 0;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double sum = m[i * n + j];
      for (std::size_t k = 0; k < j; ++k) {
        sum -= m[i * n + k] * m[j * n + k];
      }
      if (i == j && !(sum > 0)) {
        return std::nullopt;
      }
      m[i * n + j] = i == j ? std::sqrt(sum) : sum / m[j * n + j];
    }
    log_det += 2 * std::log(m[j * n + j]);
  }
  double trace = 0;
  std::vector<double> column(n);
  for (std::size_t j = 0; j < n; ++j) {  // column j of L^-1 by forward substitution
    for (std::size_t i = j; i < n; ++i) {
      double sum = i == j ? 1 : 0;
      for (std::size_t k = j; k < i; ++k) {
        sum -= m[i * n + k] * column[k];
      }
      column[i] = sum / m[i * n + i];
      trace += column[i] * column[i];
    }
  }
  return log_det + trace;
}

std::optional<double> jacobian_covariance(const Network& network,
                                          const std::vector<double>& weights,
                                          const neural::Samples& samples) {
  constexpr double kRidge = 1e-5;
  neural::Activations activations =
      neural::forward(network, weights, samples.values, Arithmetic::alone);
  const std::vector<double> ones(activations.logits().size(), 1.0);
  std::vector<double> rows =
      neural::backward(network, weights, activations, ones, nullptr, Arithmetic::alone);
  const std::size_t n = samples.count();
  const std::size_t width = network.input.size();
  for (std::size_t i = 0; i < n; ++i) {  // mean 0, length 1
    double* const row = rows.data() + i * width;
    const double mean = std::accumulate(row, row + width, 0.0) / static_cast<double>(width);
    double square = 0;
    for (std::size_t k = 0; k < width; ++k) {
      row[k] -= mean;
      square += row[k] * row[k];
    }
    if (!(square > 0) || !std::isfinite(square)) {
      return std::nullopt;
    }
    for (std::size_t k = 0; k < width; ++k) {
      row[k] /= std::sqrt(square);
    }
  }
  std::vector<double> correlations(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      correlations[i * n + j] = std::inner_product(
          rows.begin() + static_cast<std::ptrdiff_t>(i * width),
          rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width),
          rows.begin() + static_cast<std::ptrdiff_t>(j * width), i == j ? kRidge : 0.0);
    }
  }
  const auto sum = log_det_and_inverse_trace(std::move(correlations), n);
  return sum ? finite(-*sum) : std::nullopt;
}

}  // namespace

Scores scores_of(const Network& network, const std::vector<double>& weights,
                 const neural::Samples& samples) {
  Scores scores(kProxies);
  score_loss(network, weights, samples, scores);
  scores[static_cast<std::size_t>(Proxy::synflow)] = synflow(network, weights);
  scores[static_cast<std::size_t>(Proxy::jacobian_covariance)] =
      jacobian_covariance(network, weights, samples);
  scores[static_cast<std::size_t>(Proxy::parameters)] = static_cast<double>(network.weights);
  scores[static_cast<std::size_t>(Proxy::flops)] = neural::forward_flops(network);
  return scores;
}

}  // namespace orrery::rank
