// SPDX-License-Identifier: Apache-2.0
#include "report/plot_axis.h"

#include <algorithm>
#include <cmath>

namespace orrery::report {
namespace {

constexpr double kMostMarks = 8;
constexpr long kFewPowers = 3;
constexpr double kLeastRange = 1e-6;
constexpr double kSlack = 1e-9;  // of a step: what is rounded is still on the mark

}  // namespace

PlotAxis::PlotAxis(double low, double high, bool logarithmic, double from, double to)
    : low_(low), high_(high), logarithmic_(logarithmic), from_(from), to_(to) {
  if (logarithmic_) {
    mark_powers();
  } else {
    mark_evenly();
  }
}

double PlotAxis::place(double value) const {
  const auto scaled = [&](double v) { return logarithmic_ ? std::log10(v) : v; };
  const double share = (scaled(value) - scaled(low_)) / (scaled(high_) - scaled(low_));
  return from_ + share * (to_ - from_);
}

void PlotAxis::mark_evenly() {
  const double magnitude = std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ <= kLeastRange * magnitude) {  // numbers that a mark's text cannot tell apart
    high_ = low_ + std::max(1.0, 2 * kLeastRange * magnitude);
  }
  const double least = (high_ - low_) / kMostMarks;
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    step = factor * power >= least ? factor * power : step;
  }
  const auto first = static_cast<long>(std::floor(low_ / step + kSlack));
  const auto last = static_cast<long>(std::ceil(high_ / step - kSlack));
  low_ = static_cast<double>(first) * step;
  high_ = static_cast<double>(last) * step;
  for (long i = first; i <= last; ++i) {
    marks_.push_back(static_cast<double>(i) * step);
  }
}

void PlotAxis::mark_powers() {
  const auto first = std::lround(std::floor(std::log10(low_) + kSlack));
  const auto last = std::max(std::lround(std::ceil(std::log10(high_) - kSlack)), first + 1);
  low_ = std::pow(10, first);
  high_ = std::pow(10, last);
  const bool few = last - first <= kFewPowers;
  for (long power = first; power < last; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (few || factor == 1.0) {
        marks_.push_back(factor * std::pow(10, static_cast<double>(power)));
      }
    }
  }
  marks_.push_back(high_);
}

}  // namespace orrery::report
