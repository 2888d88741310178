// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace orrery::calibrate {

struct Bounds {
  double low = 0;
  double high = 1;
};

inline constexpr double kLargestError = 1;  ///< of a logarithm, that an outlier counts for

/// A RatioLoss sums how far predictions are from what was measured: the weighted mean of
/// |log(predicted / measured)|. Where weights are seconds of a step, the log error of their sum
/// counts, too.
class RatioLoss {
 public:
  void add(double weight, double ratio) {
    errors_ += weight * std::min(kLargestError, std::abs(std::log(ratio)));
    predicted_ += weight * ratio;
    weights_ += weight;
  }
  double value(bool of_a_step) const {
    return errors_ / weights_ + (of_a_step ? std::abs(std::log(predicted_ / weights_)) : 0);
  }

 private:
  double errors_ = 0;
  double predicted_ = 0;
  double weights_ = 0;
};

/// Returns the value to so many significant digits: more would claim what no measurement gives.
/// A value too small to be scaled up to its digits is returned as it is.
double rounded(double value, int digits);

using Loss = std::function<double(std::span<const double>)>;

struct Minimum {
  std::vector<double> at;
  double loss = 0;
};

/// Returns a low point of `loss` in a box: differential evolution (Storn & Price 1997: rand/1/bin)
/// from a population that contains `start`, then the simplex method of Nelder & Mead 1965 from the
/// best member, restarted until a restart gains less than a thousandth. Values outside the box are
/// clamped to it.
///
/// Needs no derivative; the loss may have steps (tiles, waves). Never worse than `start`. The same
/// input gives the same result, bit for bit: the random numbers have a fixed seed.
/// Cost: 8 * dimensions * (1 + generations) evaluations, then 120 to 2000 per dimension.
/// Requires: as many values in `start` as in `box`, at least one; low < high; a loss that is never
/// NaN.
Minimum minimize(const Loss& loss, std::span<const Bounds> box, std::span<const double> start,
                 int generations = 40);

}  // namespace orrery::calibrate
