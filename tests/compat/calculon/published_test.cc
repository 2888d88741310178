// SPDX-License-Identifier: Apache-2.0
/// Figures that calculon-ai/calculon@caa4b11f8fe1 (Apache-2.0) printed, as built and run; its stock
/// A100 system and models are in examples/calculon.
#include <gtest/gtest.h>

#include <string>

#include "compat/calculon/search.h"

namespace orrery::calculon {
namespace {

std::string example(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/examples/calculon/" + name + ".json";
}
System a100() {
  return load_system(example("a100_80g"), NumberType::float16).value();
}
Application model(const std::string& name) {
  return load_application(example(name)).value();
}

constexpr double kPrinted = 5.1e-5;  // four decimals were printed
constexpr double kPrintedGiB = 5.1e-4;

double gib(Bytes bytes) {
  return bytes / 1_GiB;
}

/// 1T on 3,072: every printed part and every class of memory.
TEST(PublishedStep, EveryPartOf1TOn3072) {
  const Application application = model("megatron-1T");
  const System system = a100();
  const auto execution = load_execution(example("megatron-1T_3072"), application);
  ASSERT_TRUE(execution) << execution.error().to_string();
  const auto ran = run(application, system, *execution);
  ASSERT_TRUE(ran) << ran.error().to_string();
  const Step& step = ran->step;
  EXPECT_NEAR(to_seconds(step.total), 131.9006, kPrinted);
  EXPECT_NEAR(to_seconds(step.forward), 15.4804, kPrinted);
  EXPECT_NEAR(to_seconds(step.backward), 30.3475, kPrinted);
  EXPECT_NEAR(to_seconds(step.recompute), 15.4804, kPrinted);
  EXPECT_NEAR(to_seconds(step.recommunication), 1.2441, kPrinted);
  EXPECT_NEAR(to_seconds(step.bubble), 65.0829, kPrinted);
  EXPECT_NEAR(to_seconds(step.tensor), 2.9645, kPrinted);
  EXPECT_NEAR(to_seconds(step.pipeline), 0.5991, kPrinted);
  EXPECT_NEAR(to_seconds(step.data), 0.6992, kPrinted);
  EXPECT_NEAR(to_seconds(step.optimizer), 0.0026, kPrinted);
  EXPECT_NEAR(step.sample_rate, 23.29, 5.1e-3);
  EXPECT_NEAR(step.efficiency, 0.3046, kPrinted);
  const Footprint& held = ran->footprint;
  EXPECT_NEAR(gib(held.first_tier), 79.554, kPrintedGiB);
  EXPECT_NEAR(gib(held.weights), 7.325, kPrintedGiB);
  EXPECT_NEAR(gib(held.activations), 5.371, kPrintedGiB);
  EXPECT_NEAR(gib(held.checkpoints), 50.000, kPrintedGiB);
  EXPECT_NEAR(gib(held.gradients), 5.566, kPrintedGiB);
  EXPECT_NEAR(gib(held.weight_gradients), 7.630, kPrintedGiB);
  EXPECT_NEAR(gib(held.optimizer), 3.662, kPrintedGiB);
}

/// 22B on 8, batch 4: the whole search, 193,496 executions.
TEST(PublishedSearch, The22BOn8) {
  const SearchResult found = search(model("megatron-22B"), a100(), {8, 4}, 1);
  EXPECT_EQ(found.executions, 193'496U);
  EXPECT_EQ(found.feasible, 156'682U);
  ASSERT_EQ(found.top.size(), 1U);
  const Execution& best = found.top.front().execution;
  EXPECT_NEAR(found.top.front().run.step.sample_rate, 5.696227559199334, 1e-6);
  EXPECT_EQ(best.tensor_par, 4);
  EXPECT_EQ(best.pipeline_par, 2);
  EXPECT_EQ(best.data_par, 1);
  EXPECT_EQ(best.pipeline_interleaving, 24);
  EXPECT_EQ(best.microbatch_size, 2);
  EXPECT_EQ(best.activation_recompute, Recompute::none);
  EXPECT_EQ(best.tensor_par_comm_type, TensorComm::rs_ag);
  EXPECT_EQ(best.tensor_par_overlap, TensorOverlap::ring);
}

/// The published spaces; the second count is without the choice of networks. (1T on 3,072 with
/// 7,002,336 and 901,664, 175B on 64 and 1T on 512 are in bench/calculon_bench.cc: seconds.)
TEST(PublishedSearch, The22BOn64CountsTheSame) {
  const SearchResult found = search(model("megatron-22B"), a100(), {64, 64}, 20);
  EXPECT_EQ(found.executions, 2'393'240U);
  EXPECT_EQ(found.distinct, 334'780U);
  ASSERT_EQ(found.top.size(), 20U);
  for (std::size_t i = 0; i < found.top.size(); ++i) {
    const Found& one = found.top[i];
    ASSERT_TRUE(check(one.execution, model("megatron-22B")));
    const auto alone = run(model("megatron-22B"), a100(), one.execution);
    ASSERT_TRUE(alone) << alone.error().to_string();
    EXPECT_EQ(alone->step.total, one.run.step.total);
    EXPECT_EQ(alone->footprint.first_tier, one.run.footprint.first_tier);
    EXPECT_TRUE(i == 0 || one.run.step.sample_rate <= found.top[i - 1].run.step.sample_rate);
  }
}

}  // namespace
}  // namespace orrery::calculon
