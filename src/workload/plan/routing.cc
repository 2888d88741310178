// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/routing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery::plan {
namespace {

constexpr int kHalvings = 60;
constexpr double kFarthest = 8;  // standard deviations

double below(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

/// Returns where a function that grows reaches `goal` between two places.
template <class Function>
double where(double low, double high, double goal, Function function) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (function(middle) < goal ? low : high) = middle;
  }
  return low;
}

/// Returns the i-th of equal steps over a normal variable.
double place_of(std::size_t i) {
  return 2 * kFarthest * static_cast<double>(i) / (Routing::kPoints - 1) - kFarthest;
}

/// Returns the mean over a standard normal variable of a function of the steps' numbers.
template <class Function>
double mean_of(Function function) {
  double sum = 0;
  double weights = 0;
  for (std::size_t i = 0; i < Routing::kPoints; ++i) {
    const double weight = std::exp(-place_of(i) * place_of(i) / 2);
    sum += weight * function(i);
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

Routing::Routing(double experts, double chosen, double bias) : experts_(experts) {
  const double share = std::min(1.0, chosen / experts);
  chances_.fill(share);
  if (bias == 0 || share == 1) {
    return;  // all alike
  }
  const double own = std::sqrt(bias);
  const double rest = std::sqrt(1 - own * own);
  const double threshold = -where(-kFarthest, kFarthest, share, below);
  for (std::size_t i = 0; i < kPoints; ++i) {
    chances_[i] = below((own * place_of(i) - threshold) / rest);
  }
  const double squares = mean_of([&](std::size_t i) { return chances_[i] * chances_[i]; });
  spread_ = std::sqrt(std::max(0.0, squares / (share * share) - 1));
}

Routing Routing::of_spread(double experts, double chosen, double spread) {
  const auto spread_of = [&](double bias) { return Routing(experts, chosen, bias).spread(); };
  return {experts, chosen, spread == 0 ? 0 : where(0, kMostBias, spread, spread_of)};
}

double Routing::reached(double tokens) const {
  if (spread_ == 0) {
    return experts_ * (1 - std::pow(1 - chances_.front(), tokens));
  }
  return experts_ * mean_of([&](std::size_t i) { return 1 - std::pow(1 - chances_[i], tokens); });
}

double Routing::reached_on_busiest(double tokens, std::int64_t ranks) const {
  const auto n = static_cast<double>(ranks);
  const double share = reached(tokens) / experts_;
  const double greatest =
      n * mean_of([&](std::size_t i) { return place_of(i) * std::pow(below(place_of(i)), n - 1); });
  const double all = experts_ / n;
  return std::min(all * share + greatest * std::sqrt(all * share * (1 - share)), all);
}

double busiest_rank(double spread, std::int64_t ranks, std::int64_t experts) {
  const auto n = static_cast<double>(ranks);
  const double apart = std::sqrt(std::log(1 + spread * spread * n / static_cast<double>(experts)));
  return n * mean_of([&](std::size_t i) { return std::pow(below(place_of(i) + apart), n - 1); });
}

}  // namespace orrery::plan
