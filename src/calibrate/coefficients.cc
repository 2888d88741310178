// SPDX-License-Identifier: Apache-2.0
#include "calibrate/coefficients.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

namespace orrery::calibrate {
namespace {

/// Visits the members that are fitted, each with its number in `fitted`.
template <class Visit>
void each_fitted(std::span<const Coefficient> fitted, Visit visit) {
  compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      if (fitted[i].name == name) {
        visit(i, member);
      }
    }
  });
}

template <class Member>
constexpr bool kIsTime = std::is_same_v<Member, Time compute::KernelCoefficients::*>;

}  // namespace

FitError fit_error(std::span<const double> predicted_over_measured) {
  FitError error{.shapes = predicted_over_measured.size()};
  if (predicted_over_measured.empty()) {
    return error;
  }
  std::vector<double> errors(predicted_over_measured.begin(), predicted_over_measured.end());
  std::transform(errors.begin(), errors.end(), errors.begin(),
                 [](double ratio) { return std::abs(ratio - 1); });
  error.mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  error.median = *middle;
  return error;
}

std::vector<double> values_of(const compute::KernelCoefficients& kernels,
                              std::span<const Coefficient> fitted) {
  std::vector<double> values(fitted.size());
  each_fitted(fitted, [&](std::size_t i, auto member) {
    if constexpr (kIsTime<decltype(member)>) {
      values[i] = to_seconds(kernels.*member);
    } else {
      values[i] = kernels.*member;
    }
  });
  return values;
}

compute::KernelCoefficients with_values(compute::KernelCoefficients kernels,
                                        std::span<const Coefficient> fitted,
                                        std::span<const double> values) {
  each_fitted(fitted, [&](std::size_t i, auto member) {
    if constexpr (kIsTime<decltype(member)>) {
      kernels.*member = from_seconds(values[i]);
    } else {
      kernels.*member = values[i];
    }
  });
  return kernels;
}

std::uint64_t shape_hash(std::span<const std::int64_t> numbers) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash ^= (static_cast<std::uint64_t>(number) >> shift) & 0xFFU;
      hash *= 1099511628211U;
    }
  }
  return hash ^ (hash >> 32U);
}

}  // namespace orrery::calibrate
