// SPDX-License-Identifier: Apache-2.0
#include "serving/search.h"

#include <fmt/format.h>

#include <utility>

namespace orrery::serving {

RateFound search_rate(Server& server, requests::Generator generator, const RateSearch& search,
                      const ServeOptions& options) {
  constexpr double kWidth = 1.02;
  constexpr double kLowest = 1e-4;
  constexpr double kHighest = 1e7;
  RateFound best;
  const auto keeps = [&](double rate) {
    generator.rate = rate;
    Run run = server.run(requests::generate(generator), options);
    ++best.runs;
    const double attained = attainment(run, search.objectives);
    if (attained < search.attainment) {
      return false;
    }
    if (rate > best.rate) {
      best.rate = rate;
      best.attained = attained;
      best.run = std::move(run);
    }
    return true;
  };
  double low = generator.rate;
  double high = low;
  if (keeps(low)) {
    while (high < kHighest && keeps(high * 2)) {
      high *= 2;
    }
    low = high;
    high *= 2;
    best.limited = low < kHighest;
  } else {
    while (low > kLowest && !keeps(low / 2)) {
      low /= 2;
    }
    high = low;
    low /= 2;
  }
  while (best.rate > 0 && best.limited && high / low > kWidth) {
    const double middle = (low + high) / 2;
    (keeps(middle) ? low : high) = middle;
  }
  best.run.rate = best.limited ? best.rate : 0;
  if (!best.limited) {
    best.run.notes.push_back(
        fmt::format("no rate breaks the limits: {} requests keep them when all come at once; more "
                    "may not",
                    generator.count));
  }
  return best;
}

}  // namespace orrery::serving
