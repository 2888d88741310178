// SPDX-License-Identifier: Apache-2.0
#include "rank/correlation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace orrery::rank {
namespace {

std::optional<double> pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (square_a <= 0 || square_b <= 0) {
    return std::nullopt;
  }
  return product / std::sqrt(square_a * square_b);
}

int order_of(double a, double b) {
  return static_cast<int>(a > b) - static_cast<int>(a < b);
}

/// The 97.5 % quantile of Student's t by degrees of freedom from 1 on.
constexpr std::array kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                              2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                              2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                              2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;  // of many degrees of freedom

}  // namespace

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) {
      ++end;
    }
    for (std::size_t i = first; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(first + 1 + end) / 2;
    }
    first = end;
  }
  return ranks;
}

std::optional<double> spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) {
    return std::nullopt;
  }
  return pearson(average_ranks(a), average_ranks(b));
}

std::optional<double> kendall(std::span<const double> a, std::span<const double> b) {
  double balance = 0;
  double ordered_a = 0;
  double ordered_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const int of_a = order_of(a[i], a[j]);
      const int of_b = order_of(b[i], b[j]);
      balance += of_a * of_b;
      ordered_a += of_a * of_a;
      ordered_b += of_b * of_b;
    }
  }
  if (ordered_a <= 0 || ordered_b <= 0) {
    return std::nullopt;
  }
  return balance / std::sqrt(ordered_a * ordered_b);
}

std::optional<double> partial_spearman(std::span<const double> a, std::span<const double> b,
                                       std::span<const double> c) {
  const auto ab = spearman(a, b);
  const auto ac = spearman(a, c);
  const auto bc = spearman(b, c);
  if (!ab || !ac || !bc) {
    return std::nullopt;
  }
  constexpr double kNothingLeft = 1e-12;  // rounding of a rho of 1
  const double left = (1 - *ac * *ac) * (1 - *bc * *bc);
  if (left < kNothingLeft) {
    return std::nullopt;
  }
  return (*ab - *ac * *bc) / std::sqrt(left);
}

Mean mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  Mean mean{std::accumulate(values.begin(), values.end(), 0.0) / n};
  if (values.size() > 1) {
    double square = 0;
    for (const double value : values) {
      square += (value - mean.value) * (value - mean.value);
    }
    const std::size_t freedom = values.size() - 1;
    const double student = freedom <= kStudent.size() ? kStudent[freedom - 1] : kNormal;
    mean.half_width = student * std::sqrt(square / (n - 1) / n);
  }
  return mean;
}

}  // namespace orrery::rank
