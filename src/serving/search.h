// SPDX-License-Identifier: Apache-2.0
/// The largest rate of requests at which enough of them keep their limits.
#pragma once

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

}  // namespace orrery::serving
