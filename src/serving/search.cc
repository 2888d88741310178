// SPDX-License-Identifier: Apache-2.0
#include "serving/search.h"

#include <fmt/format.h>

#include <algorithm>
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
    if (attained < search.attainment || !goes_on(options)) {
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
    while (low > kLowest && goes_on(options) && !keeps(low / 2)) {
      low /= 2;
    }
    high = low;
    low /= 2;
  }
  while (best.rate > 0 && best.limited && high / low > kWidth && goes_on(options)) {
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
  if (!goes_on(options)) {
    best.run.notes.emplace_back("the search was ended early: a larger rate may keep the limits");
  }
  return best;
}

std::vector<LoadPoint> load_curve(Server& server, requests::Generator generator, double rate,
                                  const ServeOptions& options, const machine::Machine& machine) {
  std::vector<LoadPoint> points;
  if (rate <= 0) {
    return points;
  }
  ServeOptions plain = options;
  plain.most_steps = 0;
  plain.progress = {};
  generator.count = std::min(generator.count, kCurveRequests);
  for (const double share : {0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0}) {
    generator.rate = share * rate;
    const Run run = server.run(requests::generate(generator), plain);
    if (!run.requests.empty() && !run.duration.is_overflow()) {
      const Metrics measured = metrics(run, machine);
      points.push_back({generator.rate, measured.ttft, measured.e2e});
    }
  }
  return points;
}

}  // namespace orrery::serving
