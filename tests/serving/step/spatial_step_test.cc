// SPDX-License-Identifier: Apache-2.0
/// Launch modes of a dataflow device, step by step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

StepCost spatial_cost_of(compute::FusionMode fusion) {
  machine::Machine machine = machine::load_machine("sn40l").value();
  machine.device.spatial.fusion = fusion;
  StepOptions options;
  options.degrees.tp = 8;
  return StepCost::make(zoo::load_model("llama-2-7b").value(), machine, options).value();
}

TEST(SpatialStep, HardwareSavesTheRoundTripsOfTheHostAndFusingMore) {
  StepCost unfused = spatial_cost_of(compute::FusionMode::unfused);
  StepCost software = spatial_cost_of(compute::FusionMode::software);
  StepCost hardware = spatial_cost_of(compute::FusionMode::hardware);
  for (const std::int64_t prompt : {0, 512, 4096}) {
    const bool decodes = prompt == 0;
    const StepShape shape{.tokens = decodes ? 1 : prompt,
                          .samples = 1,
                          .prompts = decodes
                                         ? std::vector<Prompt>{}
                                         : std::vector<Prompt>{{.queries = prompt, .context = 0}},
                          .decodes = decodes ? 1 : 0,
                          .visible = {decodes ? 512.0 : 0.0}};
    const Time slow = unfused.time(shape);
    const Time less = software.time(shape);
    const Time least = hardware.time(shape);
    fmt::print(
        "{:>5} tokens: unfused {:6.2f}, software {:6.2f}, hardware {:6.2f} ms: {:.1f}x "
        "(published, of 10 workloads: 2 to 13x)\n",
        shape.tokens, 1e3 * to_seconds(slow), 1e3 * to_seconds(less), 1e3 * to_seconds(least),
        slow / least);
    // 32 layers, embedding and head: 34 kernels, 33 round trips of 20 us less.
    EXPECT_EQ(less - least, 33 * 20_us);
    EXPECT_GT(slow, less);
  }
}

}  // namespace
}  // namespace orrery::step
