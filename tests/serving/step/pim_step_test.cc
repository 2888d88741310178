// SPDX-License-Identifier: Apache-2.0
/// Decoding on PIM-GPT beside a T4, and the published ratios.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

StepCost cost_of(const std::string& model, const char* machine, Time launch) {
  StepOptions options;
  options.launch = launch;
  if (std::string_view(machine) == "t4") {  // no bf16
    options.precision = {.weights = graph::DataType::fp16,
                         .activations = graph::DataType::fp16,
                         .kv = graph::DataType::fp16};
  }
  return StepCost::make(zoo::load_model(model).value(), machine::load_machine(machine).value(),
                        options)
      .value();
}

constexpr std::int64_t kMeanContext = 512;  // of 1,024 tokens

/// Microseconds of a step of `batch` tokens.
double step_us(StepCost& cost, std::int64_t batch, std::int64_t context = kMeanContext) {
  const StepShape shape{.tokens = batch,
                        .samples = batch,
                        .prompts = {},
                        .decodes = batch,
                        .visible = {static_cast<double>(context * batch)}};
  return 1e6 * to_seconds(cost.time(shape));
}

/// us/token of the mechanism's reference model, and of a T4 bound by its bandwidth (derived).
struct Reference {
  const char* model;
  double pim_us;
  double t4_us;
};
constexpr std::array<Reference, 4> kReferences{{{"gpt2", 110.0, 772},
                                                {"gpt2-medium", 308.5, 2209},
                                                {"gpt2-large", 656.6, 4826},
                                                {"gpt2-xl", 1287.5, 9719}}};

TEST(PimStep, DecodingIsTheReferenceWithAllScoresAndSampling) {
  // Beyond the reference: a score per head and key, residual sums and copies of heads on the chip,
  // and 10 bytes a logit of sampling.
  for (const Reference& reference : kReferences) {
    StepCost pim = cost_of(reference.model, "pim-gpt", Time(0));
    const double us = step_us(pim, 1);
    fmt::print("{:<12} PIM {:8.1f} us, reference {:8.1f} (derived): {:+.1f} %\n", reference.model,
               us, reference.pim_us, 100 * (us / reference.pim_us - 1));
    EXPECT_GT(us, reference.pim_us);
    EXPECT_LT(us, 1.2 * reference.pim_us);
  }
}

TEST(PimStep, TheGainOverAGpuIsSevenfoldByBandwidthAndFortyfoldIfItsHostLaunchesSlowly) {
  // Published: 41 to 137 times a T4. Bound by bandwidth it is 7 to 8 (derived). 345M parameters
  // took 15 ms a token on a T4 (published: openai/gpt-2 #233); our kernels of a step of gpt2-medium
  // wait 50 us each for that.
  for (const Reference& reference : kReferences) {
    StepCost pim = cost_of(reference.model, "pim-gpt", Time(0));
    StepCost bound = cost_of(reference.model, "t4", Time(0));
    StepCost eager = cost_of(reference.model, "t4", 50_us);
    const double gain = step_us(bound, 1) / step_us(pim, 1);
    const double eager_gain = step_us(eager, 1) / step_us(pim, 1);
    fmt::print("{:<12} T4 {:8.1f} us (bandwidth {:6.0f}): {:5.1f}x, eager {:8.1f} us: {:5.1f}x\n",
               reference.model, step_us(bound, 1), reference.t4_us, gain, step_us(eager, 1),
               eager_gain);
    EXPECT_GT(step_us(bound, 1), reference.t4_us);
    EXPECT_GT(gain, 8);  // weights alone, plus launches of kernels
    EXPECT_LT(gain, 16);
    EXPECT_GT(eager_gain, gain);
  }
}

std::int64_t losing_batch(const Reference& reference, std::int64_t context) {
  StepCost pim = cost_of(reference.model, "pim-gpt", Time(0));
  StepCost gpu = cost_of(reference.model, "t4", Time(0));
  std::int64_t batch = 1;
  while (step_us(pim, batch, context) < step_us(gpu, batch, context)) {
    ++batch;
  }
  return batch;
}

TEST(PimStep, AGpuWinsFromABatchOnBecauseItsWeightsAreReadOnce) {
  // A step of PIM takes as long per request, one of the GPU reads the weights once: without
  // contexts it wins from gain + 1 requests on, 11 or 12. Keys and values are nobody's to share,
  // and PIM is as much faster on them: with contexts the GPU needs a larger batch.
  for (const Reference& reference : kReferences) {
    const std::int64_t without = losing_batch(reference, 1);
    const std::int64_t with = losing_batch(reference, kMeanContext);
    fmt::print("{:<12} loses to a T4 from a batch of {} on, with 512 tokens of context {}\n",
               reference.model, without, with);
    EXPECT_GE(without, 8) << reference.model;
    EXPECT_LE(without, 16) << reference.model;
    EXPECT_GT(with, without) << reference.model;
  }
}

}  // namespace
}  // namespace orrery::step
