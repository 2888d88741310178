// SPDX-License-Identifier: Apache-2.0
// Every shipped plan, on the model and machine that it was made for.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "machine/machine.h"
#include "workload/memory/footprint.h"
#include "workload/parallel/lower.h"

namespace orrery::study {
namespace {

struct Shipped {
  const char* plan;
  const char* model;
  const char* machine;
  std::int64_t devices;
};

class ShippedPlans : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedPlans, RunAndFit) {
  const Shipped& shipped = GetParam();
  const auto plan = plan::load_plan(shipped.plan);
  const auto model = zoo::load_model(shipped.model);
  const auto machine = machine::load_machine(shipped.machine);
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_TRUE(model) << model.error().to_string();
  ASSERT_TRUE(machine) << machine.error().to_string();
  EXPECT_EQ(plan->devices(), shipped.devices);
  EXPECT_TRUE(parallel::lower(*model, *plan));
  const auto stages = footprint::memory_footprint(*model, *plan);
  ASSERT_TRUE(stages) << stages.error().to_string();
  const auto fits = footprint::check_fits(*stages, *machine);
  EXPECT_TRUE(fits) << fits.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(Plans, ShippedPlans,
                         testing::Values(Shipped{"gpt3-175b-1024", "gpt3-175b", "dgx-a100-80g",
                                                 1024},
                                         Shipped{"gpt-1t-16384", "gpt-1t", "dgx-a100-80g", 16384},
                                         Shipped{"llama-3-70b-512", "llama-3-70b", "dgx-h100", 512},
                                         Shipped{"frontier-22b", "frontier-22b", "frontier", 16},
                                         Shipped{"frontier-175b", "frontier-175b", "frontier", 128},
                                         Shipped{"frontier-1t", "frontier-1t", "frontier", 512},
                                         Shipped{"llama-3-8b-8", "llama-3-8b", "dgx-h100", 8}),
                         [](const auto& test) {
                           std::string name = test.param.plan;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ShippedPlanFiles, AreAllTested) {
  EXPECT_EQ(list_configs("plans").size(), 7);
}

}  // namespace
}  // namespace orrery::study
