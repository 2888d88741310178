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

class ShippedPlans : public ::testing::TestWithParam<Shipped> {};

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
  const auto stages = footprint::memory_footprint(*model, *plan, &*machine);
  ASSERT_TRUE(stages) << stages.error().to_string();
  const auto fits = footprint::check_fits(*stages, *machine);
  EXPECT_TRUE(fits) << fits.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ShippedPlans,
    ::testing::Values(Shipped{"gpt3-175b-1024", "gpt3-175b", "dgx-a100-80g", 1024},
                      Shipped{"gpt-1t-16384", "gpt-1t", "dgx-a100-80g", 16384},
                      Shipped{"deepseek-v3-2048", "deepseek-v3", "dgx-h800", 2048},
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

TEST(ShippedPlanFiles, DeepSeekFitsWithMomentsInFp32) {
  // As usually written down; 85 GiB were counted of it.
  auto plan = plan::load_plan("deepseek-v3-2048").value();
  plan.moment_type = graph::DataType::fp32;
  const auto model = zoo::load_model("deepseek-v3").value();
  const auto machine = machine::load_machine("dgx-h800").value();
  const auto stages = footprint::memory_footprint(model, plan, &machine).value();
  EXPECT_TRUE(footprint::check_fits(stages, machine));
  // Kept of an expert layer, bytes per token: inputs of the two norms 2 x 2 x 7168; latents 2 (1536
  // + 512), before their norms; attention's result 49 / 32 x 16384, log-sums 4 x 128;
  // router scores 4 x 256; 8 rows of 7168 and of 2 x 2048 in fp8; shared expert 2 x 2 x 2048 and
  // 2048 in fp8.
  const std::int64_t per_token = 2 * 2 * 7168 + 2 * 2048 + 49 * 512 + 4 * 128 + 4 * 256 +
                                 33 * 256 * (7 + 4) + 2 * 2 * 2048 + 33 * 64;
  EXPECT_EQ(footprint::block_memories(model, plan).blocks[plan::kFirstLayerBlock + 1].kept,
            Bytes(4096 * per_token));
}

TEST(ShippedPlanFiles, AreAllTested) {
  EXPECT_EQ(list_configs("plans").size(), 8);
}

}  // namespace
}  // namespace orrery::study
