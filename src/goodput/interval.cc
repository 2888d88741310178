// SPDX-License-Identifier: Apache-2.0
#include "goodput/interval.h"

#include <algorithm>
#include <cmath>

namespace orrery::goodput {
namespace {

/// Returns the root of a function that falls from above 0 at `low` to below 0 at `high`, to the
/// last bit.
template <class Falling>
double root_between(double low, double high, Falling value) {
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    (value(middle) > 0 ? low : high) = middle;
  }
  return low;
}

}  // namespace

Duration mtbf_of(const std::vector<StopKind>& kinds) {
  double rate = 0;
  for (const StopKind& kind : kinds) {
    rate += 1 / kind.mtbf.value();
  }
  return Duration(1 / rate);
}

double expected_goodput(const std::vector<StopKind>& kinds, const CheckpointCost& cost,
                        Duration tau) {
  const Duration mtbf = mtbf_of(kinds);
  double kept = 0;  // q
  for (const StopKind& kind : kinds) {
    kept += mtbf / kind.mtbf * std::exp(-((kind.restart + cost.persists) / mtbf));
  }
  return tau / mtbf * kept / std::expm1((tau + cost.holds) / mtbf);
}

Duration best_interval(Duration mtbf, const CheckpointCost& cost) {
  const double delta = cost.holds / mtbf;
  const double tau =
      root_between(0, 1, [&](double share) { return -std::expm1(-(share + delta)) - share; });
  return std::max(mtbf * tau, cost.persists - cost.holds);
}

Duration young_interval(Duration mtbf, Duration holds) {
  return mtbf * std::sqrt(2 * (holds / mtbf));
}

Duration daly_interval(Duration mtbf, Duration holds) {
  const double half = holds / mtbf / 2;
  return half >= 1 ? mtbf
                   : young_interval(mtbf, holds) * (1 + std::sqrt(half) / 3 + half / 9) - holds;
}

Duration break_even_mtbf(Duration restart, const CheckpointCost& cost, double share) {
  // Goodput grows with M, from 0 towards 1: by the logarithm of M in seconds.
  const double log_mtbf = root_between(-10, 60, [&](double log) {
    const Duration mtbf(std::exp(log));
    return share - expected_goodput({{mtbf, restart}}, cost, best_interval(mtbf, cost));
  });
  return Duration(std::exp(log_mtbf));
}

}  // namespace orrery::goodput
