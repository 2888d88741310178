// SPDX-License-Identifier: Apache-2.0
#include "neural/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "neural/matrix.h"

namespace orrery::neural {
namespace {

/// 0 of what is no number: both comparisons are false.
std::int32_t sign_of(double value) {
  return static_cast<std::int32_t>(value > 0) - static_cast<std::int32_t>(value < 0);
}

double least_magnitude(const double* values, std::size_t count) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::abs(values[i]);
    if (magnitude > 0) {
      least = std::min(least, magnitude);
    }
  }
  return least;
}

}  // namespace

void SumGradients::product(const WeightProduct& product) {
  const Parameter& p = *product.parameter;
  add_transposed_product({p.rows, product.samples * product.positions, p.columns}, product.delta,
                         product.input, sum_.data() + p.offset);
}

void SumGradients::vector(const Parameter& parameter, const double* values) {
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    sum_[parameter.offset + i] += values[i];
  }
}

void SignGradients::product(const WeightProduct& product) {
  const Parameter& p = *product.parameter;
  for (std::size_t i = 0; i < product.samples; ++i) {
    const bool vanishes = product.positions == 1 &&
                          least_magnitude(product.delta + i * p.rows, p.rows) *
                                  least_magnitude(product.input + i * p.columns, p.columns) <
                              std::numeric_limits<double>::min();
    if (product.positions == 1 && !vanishes) {
      add_signs(product, i);
    } else {
      add_sample(product, i);
    }
  }
}

void SignGradients::add_signs(const WeightProduct& product, std::size_t sample) {
  const Parameter& p = *product.parameter;
  std::vector<std::int32_t> signs(p.columns);
  for (std::size_t c = 0; c < p.columns; ++c) {
    signs[c] = sign_of(product.input[sample * p.columns + c]);
  }
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::int32_t delta = sign_of(product.delta[sample * p.rows + r]);
    std::int32_t* const row = sum_.data() + p.offset + r * p.columns;
    for (std::size_t c = 0; c < p.columns; ++c) {
      row[c] += delta * signs[c];
    }
  }
}

void SignGradients::add_sample(const WeightProduct& product, std::size_t sample) {
  const Parameter& p = *product.parameter;
  std::vector<double> gradient(p.size());
  add_transposed_product({p.rows, product.positions, p.columns},
                         product.delta + sample * product.positions * p.rows,
                         product.input + sample * product.positions * p.columns, gradient.data());
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    sum_[p.offset + k] += sign_of(gradient[k]);
  }
}

}  // namespace orrery::neural
