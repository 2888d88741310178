// SPDX-License-Identifier: Apache-2.0
/// The largest rate of requests at which enough of them keep their limits.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {

struct RateSearch {
  Objectives objectives;
  double attainment = 0.99;  ///< share of requests that must keep them
};
struct RateFound {
  double rate = 0;  ///< per second; 0: not even at the lowest rate tried
  Run run;          ///< at this rate, which it names if `limited`
  double attained = 0;
  int runs = 0;
  bool limited = true;  ///< false: so few requests keep the limits however fast they come
};

/// Doubles or halves the rate from the generator's until it is between two, then halves the
/// interval until it is 2 % wide. All runs have the same draws (gaps scale with 1 / rate), so that
/// they differ by the rate alone.
RateFound search_rate(Server& server, requests::Generator generator, const RateSearch& search,
                      const ServeOptions& options = {});

/// Latencies at one rate.
struct LoadPoint {
  double rate = 0;  ///< requests per second
  Statistics ttft;
  Statistics e2e;
};

/// Latencies at a quarter, half, three quarters, once, 1.25, 1.5, 2 and 3 times `rate` per second
/// (0: at none): how they grow until the engine is full. Each point serves the first
/// kCurveRequests of the generator's requests at most, with the same draws (gaps scale with
/// 1 / rate).
std::vector<LoadPoint> load_curve(Server& server, requests::Generator generator, double rate,
                                  const ServeOptions& options, const machine::Machine& machine);
inline constexpr std::int64_t kCurveRequests = 1000;

}  // namespace orrery::serving
