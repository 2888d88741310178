// SPDX-License-Identifier: Apache-2.0
/// An axis of a chart: numbers to places, and where its marks stand.
#pragma once

#include <vector>

namespace orrery::report {

class PlotAxis {
 public:
  /// Numbers from `low` to `high`, rounded outwards to marks, on places from `from` to `to`.
  /// Requires low > 0 if logarithmic.
  PlotAxis(double low, double high, bool logarithmic, double from, double to);

  double place(double value) const;
  double low() const { return low_; }
  /// Returns whole multiples of 1, 2 or 5 times a power of ten, at most about eight; if logarithmic
  /// the powers of ten, with 2 and 5 times these when there are few.
  const std::vector<double>& marks() const { return marks_; }

 private:
  void mark_evenly();
  void mark_powers();

  double low_;
  double high_;
  bool logarithmic_;
  double from_;
  double to_;
  std::vector<double> marks_;
};

}  // namespace orrery::report
