// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "compat/calculon/search.h"
#include "compat/calculon/to_plan.h"

namespace orrery::calculon {
namespace {

using ::testing::HasSubstr;

/// 1 TFLOP/s, 1 GB/s of memory and a network of 1 GB/s, all at half their rate for small work.
System simple() {
  System system;
  system.matrix = {1_TFLOPs, {{{Flops(1e9), 1}, {Flops(0), 0.5}}}};
  system.vector = system.matrix;
  system.memory = {80_GiB, 1_GBps, {{{Bytes(1000), 1}, {Bytes(0), 0.5}}}};
  system.lower_memory = system.memory;
  Network network;
  network.bandwidth = 1_GBps;
  network.size = 64;
  network.latency = 5_us;
  network.volumes[static_cast<std::size_t>(Operation::all_reduce)] = {2, -1};
  system.networks = {network};
  return system;
}

const Application kApplication{.hidden = 64,
                               .feedforward = 256,
                               .seq_size = 32,
                               .attn_heads = 4,
                               .attn_size = 16,
                               .num_blocks = 4};

TEST(CalculonSystem, EfficiencyIsThatOfTheLargestStepReached) {
  const System system = simple();
  EXPECT_EQ(system.matrix.time(Flops(1e9)), 1_ms);
  EXPECT_EQ(system.matrix.time(Flops(5e8)), 1_ms);  // half the work at half the rate
  EXPECT_EQ(system.memory.time(Bytes(1000)), 1_us);
  EXPECT_EQ(system.memory.time(Bytes(500)), 1_us);
}

TEST(CalculonSystem, AnAllReduceOfFourMovesOneAndAHalfTimesItsBytes) {
  // 5 us + 1 MB * 2 * (1 - 1/4) / 1 GB/s
  EXPECT_EQ(simple().networks[0].time(Operation::all_reduce, Bytes(1'000'000), 4), 1505_us);
}

/// Weights: 12 h^2 and two norms of 2 h; optimizer 12 bytes each, gradients 4 of one block and 2.
TEST(CalculonFootprint, WeightsAndOptimizerOfAllBlocks) {
  Execution execution;
  const Block block = block_of(kApplication, simple(), execution);
  const std::int64_t weights = 12 * 64 * 64 + 4 * 64;
  const Footprint held = footprint_of(kApplication, execution, block);
  EXPECT_EQ(held.weights, Bytes(4 * 2 * weights));
  EXPECT_EQ(held.optimizer, Bytes(4 * 12 * weights));
  EXPECT_EQ(held.weight_gradients, Bytes((4 + 3 * 2) * weights));
}

/// The bubble of p stages and m microbatches is p - 1 microbatches' work of a stage without its
/// messages' part: with free messages forward + backward over m, times p - 1.
TEST(CalculonStep, TheBubbleIsOneMicrobatchForEveryOtherStage) {
  System system = simple();
  system.networks[0].latency = Time(0);
  system.networks[0].bandwidth = Bandwidth(1e30);
  Execution execution{.num_procs = 4, .pipeline_par = 4, .batch_size = 8, .microbatch_size = 1};
  const Step step =
      step_of(kApplication, system, execution, block_of(kApplication, system, execution));
  EXPECT_EQ(step.bubble, (step.forward + step.backward) / 8.0 * 3);
}

TEST(CalculonPlan, HasTheDegreesOrSaysWhatAPlanLacks) {
  Execution execution{.num_procs = 8,
                      .tensor_par = 2,
                      .pipeline_par = 2,
                      .data_par = 2,
                      .batch_size = 8,
                      .activation_recompute = Recompute::attn_only,
                      .pipeline_interleaving = 2,
                      .optimizer_sharding = true,
                      .tensor_par_comm_type = TensorComm::rs_ag};
  const auto plan = to_plan(kApplication, execution);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->devices(), 8);
  EXPECT_EQ(plan->zero, 1);
  EXPECT_EQ(plan->chunks, 2);
  EXPECT_EQ(plan->recompute, plan::Recompute::selective);
  EXPECT_TRUE(plan->sequence_parallel);
  execution.weight_offload = true;
  EXPECT_THAT(to_plan(kApplication, execution).error().to_string(), HasSubstr("weight_offload"));
}

class CalculonFiles : public ::testing::Test {
 protected:
  std::string written(const std::string& text) const {
    std::ofstream(file_) << text;
    return file_;
  }
  ~CalculonFiles() override { (void)std::remove(file_.c_str()); }

 private:
  std::string file_ = ::testing::TempDir() + "calculon_files_test.json";
};

TEST_F(CalculonFiles, NameEveryMistakeAndItsLine) {
  const auto application =
      load_application(written("{\"hidden\": 0,\n\"feedfoward\": 4, \"seq_size\": \"a\"}"));
  ASSERT_FALSE(application);
  const std::string text = application.error().to_string();
  EXPECT_THAT(text, HasSubstr(".json:1"));
  EXPECT_THAT(text, HasSubstr("did you mean 'feedforward'"));
  EXPECT_THAT(text, HasSubstr("num_blocks"));
  const auto system =
      load_system(written(R"({"matrix": {"float8": {"tflops": 1, "gflops_efficiency": [[1, 2]]}},
                  "vector": {"float16": {"tflops": 1, "gflops_efficiency": [[0, 1]]}},
                  "mem1": {"GiB": 1, "GBps": 0, "MB_efficiency": [[0, 1, 2]]},
                  "processing_mode": "none", "networks": []})"),
                  NumberType::float16);
  ASSERT_FALSE(system);
  for (const char* part : {"no rates of float16", "lists of two", "GBps", "mem2",
                           "roofline, no_overlap", "at least one network"}) {
    EXPECT_THAT(system.error().to_string(), HasSubstr(part));
  }
}

TEST(CalculonExecution, DegreesThatDoNotDivideAreAllNamed) {
  const auto checked = check({.num_procs = 7,
                              .tensor_par = 3,
                              .data_par = 1,
                              .optimizer_sharding = true,
                              .seq_par_ag_redo = true},
                             kApplication);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().mistakes.size(), 4U);  // num_procs, tensor_par, sharding, redo
}

}  // namespace
}  // namespace orrery::calculon
