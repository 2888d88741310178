// SPDX-License-Identifier: Apache-2.0
// Estimate, bound and memory of 5,000 random plans over every field, twelve models (dense, experts,
// latent attention, hybrids) on ten machines (switches, full connection, PCIe, tori), against the
// simulation and the whole footprint. ORRERY_RANDOM_SEED draws others.
#include "../../estimate/random_plans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/quick_bound.h"
#include "simulate/simulate.h"
#include "workload/memory/footprint.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

constexpr int kPlans = 5000;

std::uint64_t seed() {
  const char* given = std::getenv("ORRERY_RANDOM_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261123;
}

Result<Time> simulated(const testing::RandomPlans::Drawn& drawn) {
  machine::Machine machine = drawn.machine;
  parallel::set_clocks(machine, drawn.plan.model, drawn.plan.plan);
  const auto workload = parallel::lower(drawn.plan.model, drawn.plan.plan, {.machine = &machine});
  if (!workload) {
    return fail(workload.error());
  }
  simulate::SimulateOptions options;
  options.algorithms = plan::algorithms_of(drawn.plan.plan);
  const auto timeline = simulate::simulate(*workload, machine, options);
  if (!timeline) {
    return fail(timeline.error());
  }
  return timeline->step_time;
}

void compare_memory(const testing::RandomPlans::Drawn& drawn, const std::string& told) {
  const auto stages =
      footprint::memory_footprint(drawn.plan.model, drawn.plan.plan, &drawn.machine);
  ASSERT_TRUE(stages) << told;
  const auto most =
      std::max_element(stages->begin(), stages->end(),
                       [](const auto& a, const auto& b) { return a.total() < b.total(); });
  const footprint::Fullest fullest =
      footprint::fullest(drawn.plan.model, drawn.plan.plan, drawn.machine);
  EXPECT_EQ(fullest.fits, footprint::check_fits(*stages, drawn.machine).has_value()) << told;
  EXPECT_EQ(fullest.total, most->total()) << told;
}

TEST(RandomPlans, EstimateBoundAndMemoryHold) {
  std::vector<std::string> machines = testing::kSwitchedMachines;
  machines.erase(machines.begin() + 1);  // selene is dgx-a100-80g with other links
  machines.push_back("tpu-v4");
  testing::RandomPlans::Options options{.seed = seed(), .machines = machines};
  options.models.insert(options.models.end(), {"gpt-oss-20b", "falcon-7b"});
  testing::RandomPlans plans(options);
  std::vector<double> differences;
  for (int i = 0; i < kPlans; ++i) {
    const auto drawn = plans.next();
    const std::string told = drawn.plan.name + "\n" + plan::to_yaml(drawn.plan.plan);
    const auto truth = simulated(drawn);
    ASSERT_TRUE(truth) << told << truth.error().to_string();
    Estimator estimator(drawn.plan.model, drawn.machine);
    QuickBound quick(drawn.plan.model, drawn.machine);
    const auto estimate = estimator.interval(drawn.plan.plan);
    const auto bound = estimator.lower_bound(drawn.plan.plan);
    const auto least = quick.least_time(drawn.plan.plan);
    ASSERT_TRUE(estimate && bound && least) << told;  // nothing refused that simulate accepts
    EXPECT_LE(*bound, *truth) << told;
    EXPECT_LE(*least, *truth) << told;
    compare_memory(drawn, told);
    differences.push_back(std::abs(estimate->value / *truth - 1));
  }
  std::sort(differences.begin(), differences.end());
  const auto at = [&](double share) {
    return differences[static_cast<std::size_t>(share * (kPlans - 1))];
  };
  fmt::print(
      "{} random plans: median {:.3f} %, 95 % within {:.2f} %, 99 % {:.2f} %, all {:.2f} %\n",
      kPlans, 100 * at(0.5), 100 * at(0.95), 100 * at(0.99), 100 * at(1));
  EXPECT_LE(at(0.95), 0.03);
  EXPECT_LE(at(0.99), 0.05);
  EXPECT_LE(at(1), 0.1);
}

}  // namespace
}  // namespace orrery::estimate
