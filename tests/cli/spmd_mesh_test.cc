// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

nlohmann::json mesh_json_of(const std::string& arguments) {
  const Outcome run = orrery("spmd " + arguments + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(SpmdMesh, SlowProgramsOfThreeAxesWithALimitAndOverlapArePlans) {
  const Folder folder;
  const std::string plan = folder / "plan.yaml";
  const std::string on = " --cost orrery --machine dgx-h100 --model gpt2 --batch 32 --sequence 512";
  // Of an axis of one device nothing is left.
  const auto two = mesh_json_of("--mesh 8x2" + on);
  EXPECT_EQ(mesh_json_of("--mesh 8x2x1" + on).at("optimum_s"), two.at("optimum_s"));
  EXPECT_EQ(two.at("bound_s"), two.at("optimum_s"));
  const auto free = mesh_json_of("--mesh 4x2x2 --states 40" + on);
  EXPECT_EQ(free.at("simulated_s"), free.at("optimum_s"));
  EXPECT_LE(free.at("bound_s"), free.at("optimum_s"));
  EXPECT_EQ(free.at("mesh"), "4x2x2");
  const auto bytes = static_cast<std::int64_t>(free.at("memory_bytes").get<double>() * 0.9);
  const auto found = mesh_json_of("--mesh 4x2x2 --states 40 --overlap both --max-memory " +
                                  std::to_string(bytes) + "B --save " + plan + on);
  EXPECT_LE(found.at("memory_bytes"), bytes);
  EXPECT_EQ(found.at("max_memory_bytes"), bytes);
  EXPECT_LE(found.at("bound_s"), found.at("simulated_s"));
  EXPECT_LT(found.at("simulated_s"), found.at("optimum_s"));
  const Outcome run = orrery("simulate --plan " + plan + " --model gpt2 --machine dgx-h100 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), found.at("simulated_s"));
  const auto frontier = mesh_json_of("--mesh 8x2 --frontier --layers 1" + on).at("frontier");
  ASSERT_GE(frontier.size(), 2);
  EXPECT_LT(frontier.at(0).at("time_s"), frontier.at(1).at("time_s"));
  EXPECT_LT(frontier.at(1).at("memory_bytes"), frontier.at(0).at("memory_bytes"));
}

TEST(SpmdMesh, ALimitOfNothingIsAMistake) {
  for (const char* mesh : {"", "--mesh 8x2 "}) {
    EXPECT_EQ(orrery("spmd --graph gpt2 " + std::string(mesh) +
                     "--cost orrery --machine dgx-h100 --max-memory 0")
                  .err,
              "--max-memory: found '0', expected a size above 0\n");
  }
}

TEST(SpmdMesh, AFrontierHasTheBoundOfItsFastest) {
  // Of programs that are as fast the one that holds less is there, found at a price of memory.
  const auto found = mesh_json_of(
      "--graph Rmoe --layers 1 --mesh 4x2 --cost orrery --machine dgx-h100 --frontier");
  EXPECT_EQ(found.at("dropped_states"), 0);
  EXPECT_EQ(found.at("bound_s"), found.at("optimum_s"));
}

}  // namespace
}  // namespace orrery::testing
