// SPDX-License-Identifier: Apache-2.0
#include "study/predict.h"

#include <gtest/gtest.h>

namespace orrery::study {
namespace {

TEST(Predict, MfuIsTheModelFlopRateInPerCentOfThePeak) {
  // A100: 312 TFLOP/s of bf16. Of a GPT whose vocabulary needs no padding both count the same
  // FLOPs.
  const auto run = make_case({{"layers", "4", ""},
                              {"hidden", "1024", ""},
                              {"heads", "16", ""},
                              {"vocab", "51200", ""},
                              {"sequence", "1024", ""},
                              {"devices", "2", ""},
                              {"tp", "2", ""},
                              {"global_batch", "4", ""}});
  ASSERT_TRUE(run) << run.error().to_string();
  const auto machine = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(machine);
  const auto mfu = predict(*run, Measure::mfu_percent, *machine);
  const auto rate = predict(*run, Measure::model_tflops, *machine);
  ASSERT_TRUE(mfu && rate);
  EXPECT_GT(mfu->value, 0);
  EXPECT_NEAR(mfu->value, 100 * rate->value / 312, 1e-9 * mfu->value);
}

}  // namespace
}  // namespace orrery::study
