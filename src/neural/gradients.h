// SPDX-License-Identifier: Apache-2.0
/// Gradients receive those of the parameters that a backward pass meets.
#pragma once

#include <cstdint>
#include <vector>

#include "neural/network.h"

namespace orrery::neural {

/// The gradient of a matrix of weights. Of sample i it is a sum over positions (of an image, of
/// tokens; one in a plain linear layer):
///
///   G_i[rows, columns] = sum_p delta[i, p, rows]^T input[i, p, columns]
struct WeightProduct {
  const Parameter* parameter = nullptr;
  std::size_t samples = 0;
  std::size_t positions = 0;
  const double* delta = nullptr;  ///< [samples, positions, rows]: gradient of the loss by outputs
  const double* input = nullptr;  ///< [samples, positions, columns]
};

class Gradients {
 public:
  virtual ~Gradients() = default;
  virtual void product(const WeightProduct& product) = 0;
  /// Takes that of a bias or a norm's parameter: `values[rows]`, summed over the samples of the
  /// call.
  virtual void vector(const Parameter& parameter, const double* values) = 0;
};

/// The sum over samples, as training takes it.
class SumGradients final : public Gradients {
 public:
  explicit SumGradients(const Network& network) : sum_(network.weights) {}
  void product(const WeightProduct& product) override;
  void vector(const Parameter& parameter, const double* values) override;

  const std::vector<double>& sum() const { return sum_; }

 private:
  std::vector<double> sum_;
};

/// Sums of the signs of every sample's own gradient, of matrices alone; sign(0) = sign(NaN) = 0.
///
/// Where a sample has one position, no product of gradients is made at all: of the batch
///
///   sum_i sign(G_i) = sign(delta)^T sign(input)
///
/// is one product of small whole numbers. It equals the loop over samples exactly: where a product
/// of two numbers that are not 0 could round to 0, that sample goes through the loop.
class SignGradients final : public Gradients {
 public:
  explicit SignGradients(const Network& network) : sum_(network.weights) {}
  void product(const WeightProduct& product) override;
  void vector(const Parameter&, const double*) override {}

  /// Returns the sum by weight, each within [-samples, samples]; those of biases and norms are 0.
  const std::vector<std::int32_t>& sum() const { return sum_; }

 private:
  void add_sample(const WeightProduct& product, std::size_t sample);
  void add_signs(const WeightProduct& product, std::size_t sample);

  std::vector<std::int32_t> sum_;
};

}  // namespace orrery::neural
