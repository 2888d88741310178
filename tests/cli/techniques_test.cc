// SPDX-License-Identifier: Apache-2.0
// What results say of the techniques of a plan, whatever command prints them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

TEST(Techniques, TheTableNamesThem) {
  const std::string words = "simulate --model gpt2 --machine dgx-a100-80g --global-batch 16 ";
  const std::string rounds = words + "--dp 16 --data-parallel-update co2 --tau 4 ";
  EXPECT_THAT(orrery(rounds).out, HasSubstr("\nco2 every 4 steps, 16 workers\n"));
  EXPECT_THAT(orrery(rounds + "--zero 2 --shard-grads 8").out,
              HasSubstr("\nco2 every 4 steps, 2 workers of 8 ranks\n"));
  EXPECT_THAT(orrery(words + "--dp 16 --zero 3 --quantized-gather --quantized-reduce "
                             "--secondary-shard 8 --optimizer lion")
                  .out,
              HasSubstr("\nparameters gathered in int8; gradients reduced in int4; a second copy "
                        "over 8 ranks; optimizer lion\n"));
  // A layer of GPT-2: 16 x (768 x 4 + 768 x 2 + 768 x 5 x 2) = 196,608, times 12.
  const std::string adapted = words + "--dp 8 --lora-rank 16 --frozen-type nf4 ";
  EXPECT_THAT(orrery(adapted).out,
              HasSubstr("\nadapters of rank 16, 2,359,296 parameters; others frozen in nf4\n"));
  EXPECT_EQ(nlohmann::json::parse(orrery(adapted + "--json").out)["adapter_parameters"], 2'359'296);
}

TEST(Techniques, EveryResultOnATrackerSaysThatItIsHypothetical) {
  const Folder folder;
  const std::string plan = folder.write(
      "tracked.yaml", "{tp: 2, dp: 2, global_batch: 4, overlap_tensor: tracked_mca}\n");
  const std::string where = " --model gpt2 --machine dgx-a100-80g ";
  for (const std::string& command :
       {"compare " + plan + " " + plan, "run-plan --tokens 1B --plan " + plan,
        "estimate --plan " + plan, "explain --plan " + plan,
        std::string("plan --devices 4 --batch 4 --tp 2 --fix overlap_tensor=tracked_mca")}) {
    for (const char* form : {"", " --json"}) {
      const Outcome run = orrery(command + where + form);
      EXPECT_EQ(run.status, 0) << command << run.err;
      EXPECT_THAT(run.out, HasSubstr("hypothetical hardware")) << command << form;
    }
  }
}

}  // namespace
}  // namespace orrery::testing
