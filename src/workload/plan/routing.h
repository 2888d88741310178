// SPDX-License-Identifier: Apache-2.0
/// Tokens choose experts: how unevenly, and how many experts a step reaches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::plan {

/// A router of E experts gives each of a token's scores as sqrt(r) b + sqrt(1 - r) n, b the
/// expert's own, n the token's, both standard normal; the k highest are chosen. So an expert is
/// chosen with the probability
///
///   p(b) = Phi((sqrt(r) b - t) / sqrt(1 - r)),   Phi(-t) = k / E,
///
/// loads deviate by s of their mean, and T tokens reach so many experts:
///
///   s^2 = mean of p^2 / (k / E)^2 - 1,           E (1 - mean of (1 - p)^T)
///
/// One share r (`bias`) makes few large experts less uneven than many small ones: a load is E / k
/// times the mean at most. r 0 is a router without favourites.
/// Ignores: groups of experts, that a layer's favourites change with the text.
class Routing {
 public:
  static constexpr double kMostBias = 0.98;  ///< steps of b are narrower than p's slope

  /// Requires 0 < chosen and 0 <= bias <= kMostBias.
  Routing(double experts, double chosen, double bias);
  /// Returns the one whose loads deviate by `spread` of their mean, or by as much as they can.
  static Routing of_spread(double experts, double chosen, double spread);

  double spread() const { return spread_; }
  double reached(double tokens) const;
  /// Returns how many experts that T tokens reach the rank of n has that has the most of them: the
  /// expected maximum of n numbers that deviate by sqrt(E / n q (1 - q)), q = reached(T) / E.
  double reached_on_busiest(double tokens, std::int64_t ranks) const;

  static constexpr std::size_t kPoints = 129;

 private:
  double experts_;
  double spread_ = 0;
  std::array<double, kPoints> chances_{};  ///< p at equal steps of b
};

/// Returns the rows of the busiest of n ranks over their mean, where the loads of E experts deviate
/// by s of their mean. Means of E / n loads deviate by s sqrt(n / E); taken as log-normal, the
/// greatest of n of them is expected at
///
///   n times the mean of Phi(v + g)^(n - 1) over a standard normal v,   g^2 = ln(1 + s^2 n / E)
///
/// Ignores: that loads sum up to the tokens.
double busiest_rank(double spread, std::int64_t ranks, std::int64_t experts);

}  // namespace orrery::plan
