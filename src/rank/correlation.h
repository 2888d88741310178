// SPDX-License-Identifier: Apache-2.0
/// Says how well one ranking says what another does.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace orrery::rank {

/// Returns ranks from 1 on; equal values have values their average rank.
std::vector<double> average_ranks(std::span<const double> values);

/// Returns Spearman's rho: Pearson's correlation of average ranks. Nothing where there are fewer
/// than two values or all values of one side are equal: no order is no correlation of 0.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

/// Returns Kendall's tau-b = (concordant - discordant) / sqrt((n0 - ties in a) (n0 - ties in b))
/// over the n0 = n (n - 1) / 2 pairs. Nothing as above.
/// Source: Kendall, Biometrika 33, 1945.
std::optional<double> kendall(std::span<const double> a, std::span<const double> b);

/// Returns Spearman's rho of a and b given c: (ab - ac bc) / sqrt((1 - ac^2) (1 - bc^2)) of the
/// three rhos: what a says of b beyond what c says. Nothing where one of them is undefined, or
/// where c orders a or b fully.
std::optional<double> partial_spearman(std::span<const double> a, std::span<const double> b,
                                       std::span<const double> c);

/// The mean of independent values, and the interval in which it lies 95 times of 100 where they are
/// normal: mean +- t s / sqrt(n), t Student's quantile for n - 1 degrees of freedom. Of one value
/// there is no interval.
struct Mean {
  double value = 0;
  std::optional<double> half_width{};
};
/// Requires a value.
Mean mean_of(std::span<const double> values);

}  // namespace orrery::rank
