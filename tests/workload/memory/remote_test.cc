// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../plan/cases.h"
#include "machine/machine.h"
#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::small_gpt;
using ::testing::HasSubstr;

constexpr std::int64_t kAll = 2 * kLayer + kEmbedding + kNorm;  // of small_gpt(2)

plan::Plan remote_plan(std::int64_t dp = 1) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .offload_optimizer = plan::Offload::remote,
          .offload_params = plan::Offload::remote};
}

TEST(MemoryRemote, TheDeviceKeepsBlocksAndThePoolKeepsTheModel) {
  // 2 + 4 + 12 bytes of a quarter of the parameters.
  const auto stages = memory_footprint(small_gpt(2), remote_plan(4)).value();
  EXPECT_NEAR(static_cast<double>(stages[0].lower[graph::kRemoteLower].value()), 18.0 * kAll / 4,
              16);
  EXPECT_EQ(stages[0].highest[plan::MemoryCategory::parameters], Bytes(0));
  EXPECT_EQ(stages[0].highest[plan::MemoryCategory::gradients], Bytes(0));
  // Two of eight pieces of 16 bytes of a parameter during the update.
  EXPECT_NEAR(static_cast<double>(stages[0].highest[plan::MemoryCategory::optimizer].value()),
              16.0 * kAll / 4 * 2 / 8, 16);
}

TEST(MemoryRemote, APoolThatIsTooSmallIsNamed) {
  machine::Machine machine =
      machine::with_devices(machine::load_machine("hiermem-opt").value(), 4).value();
  const auto stages = memory_footprint(small_gpt(2), remote_plan(4)).value();
  EXPECT_TRUE(check_fits(stages, machine));
  machine.remote_memory.capacity = Bytes(1000);
  const auto small = check_fits(stages, machine);
  ASSERT_FALSE(small);
  // 256 groups of 1000 bytes over 4 devices.
  EXPECT_THAT(small.error().to_string(), HasSubstr("stage 0, remote memory"));
  EXPECT_THAT(small.error().to_string(), HasSubstr("62.5 KiB"));
}

}  // namespace
}  // namespace orrery::footprint
