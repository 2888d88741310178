// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_limits.h"

#include <algorithm>
#include <cstdint>
#include <thread>

#include "cli/step_flags.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kTop = 5;
constexpr std::int64_t kEstimates = 1500;
constexpr std::int64_t kSimulations = 128;
constexpr std::int64_t kFewBounds = 20'000;  // of very few estimates

/// Returns at most 16 threads: more find too little to do ahead of the search.
std::int64_t usual_threads() {
  return std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 16);
}

}  // namespace

void PlanLimits::declare(Options& options) {
  options.value("--top", top_, "INT", "plans to print; default 5");
  options.value("--estimates", estimates_, "INT", "plans to estimate at the most; default 1500");
  options.value("--bounds", bounds_, "INT",
                "of plans and shapes to compute at the most; default 400000");
  options.value("--simulations", simulations_, "INT", "to simulate at the most; default 128");
  options.value("--threads", threads_, "INT",
                "default: one per processor, at most 16; the answer is the same with any number");
  options.flag("--exhaustive", exhaustive_, "estimate every plan whose bound does not rule it out");
}

full::Options PlanLimits::read(Error& mistakes) const {
  full::Options options;
  options.top = static_cast<std::size_t>(whole_number("--top", top_, kTop, INT32_MAX, mistakes));
  options.most_estimates = static_cast<std::size_t>(
      whole_number("--estimates", estimates_, kEstimates, INT32_MAX, mistakes));
  options.most_simulations = static_cast<std::size_t>(
      whole_number("--simulations", simulations_, kSimulations, INT32_MAX, mistakes));
  const auto estimates = static_cast<std::int64_t>(options.most_estimates);
  constexpr auto kMostBounds = static_cast<std::int64_t>(full::kMostBounds);
  const std::int64_t usual_bounds =
      std::clamp(kMostBounds / kEstimates * estimates, kFewBounds, kMostBounds);
  options.most_bounds = static_cast<std::size_t>(
      whole_number("--bounds", bounds_, usual_bounds, INT32_MAX, mistakes));
  options.exhaustive = exhaustive_;
  options.threads = thread_count(threads_, usual_threads(), mistakes);
  return options;
}

}  // namespace orrery::cli
