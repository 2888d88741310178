// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/machine_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"

namespace orrery::plan {
namespace {

using testing::HasSubstr;

Plan remote_plan(std::int64_t dp = 1) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .offload_optimizer = Offload::remote,
          .offload_params = Offload::remote};
}

Plan recipe(Quantization quantization) {
  return {.quantization = quantization};
}

TEST(MachineCheck, WantsTheRemoteMemoryAndItsSwitches) {
  const machine::Machine none = machine::load_machine("dgx-a100-80g").value();
  const auto refused = check_machine(remote_plan(), none);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("a machine with remote_memory"));
  Plan pooled = remote_plan(2);
  pooled.pool_collectives = true;
  EXPECT_TRUE(check_machine(pooled, machine::load_machine("hiermem-opt").value()));
  const auto switchless = check_machine(pooled, machine::load_machine("zero-infinity").value());
  ASSERT_FALSE(switchless);
  EXPECT_THAT(switchless.error().to_string(), HasSubstr("has no in_switch"));
}

TEST(MachineCheck, WantsKernelsOfAttentionInFp8) {
  Plan plan;
  plan.attention = zoo::AttentionKernel::cudnn_fp8;
  EXPECT_TRUE(check_machine(plan, machine::load_machine("dgx-b200").value()));
  const auto refused = check_machine(plan, machine::load_machine("mi300x").value());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(),
              HasSubstr("attention: found 'cudnn_fp8', expected flash or another in 16 bits"));
}

TEST(MachineCheck, WantsAnAlgorithmThatSumsOverTheGroup) {
  // Two ranks of one node: nothing to go through dimension by dimension; an A100's switch adds
  // nothing up.
  const machine::Machine a100 = machine::load_machine("dgx-a100-80g").value();
  const auto in_switch =
      check_machine({.tp = 8, .tp_algorithm = collective::CollectiveAlgorithm::in_switch}, a100);
  ASSERT_FALSE(in_switch);
  EXPECT_THAT(in_switch.error().to_string(),
              HasSubstr("tp_algorithm: found 'in_switch', expected one that does all_reduce over "
                        "the 8 ranks of tp on dgx-a100-80g: auto, ring"));
  EXPECT_FALSE(
      check_machine({.tp = 8, .tp_algorithm = collective::CollectiveAlgorithm::rail}, a100));
  EXPECT_TRUE(
      check_machine({.tp = 8, .tp_algorithm = collective::CollectiveAlgorithm::ring}, a100));
  EXPECT_TRUE(check_machine({.tp = 8, .tp_algorithm = collective::CollectiveAlgorithm::in_switch},
                            machine::load_machine("dgx-h100").value()));
  Plan scattered{.dp = 16, .global_batch = 16, .zero = 1};
  scattered.dp_algorithm = collective::CollectiveAlgorithm::double_binary_tree;
  EXPECT_THAT(check_machine(scattered, a100).error().to_string(), HasSubstr("reduce_scatter"));
  scattered.zero = 0;
  EXPECT_TRUE(check_machine(scattered, a100));
}

TEST(MachineCheck, WantsTheTierToOffloadTo) {
  auto machine = machine::load_machine("dgx-a100-80g").value();
  machine.device.memory.resize(2);
  EXPECT_TRUE(check_machine({.offload_optimizer = Offload::cpu}, machine));
  const auto nvme = check_machine({.offload_optimizer = Offload::nvme}, machine);
  ASSERT_FALSE(nvme);
  EXPECT_THAT(nvme.error().to_string(),
              HasSubstr("offload_optimizer: found 'nvme', expected a machine with 3 memory tiers"));
  machine.device.memory.resize(1);
  EXPECT_FALSE(check_machine({.offload_activations = 0.5}, machine));
}

TEST(MachineCheck, TheDeviceMustComputeInTheRecipesType) {
  const auto machine = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(machine);
  const auto checked = check_machine(recipe(Quantization::fp8_current), *machine);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().to_string(),
              HasSubstr("quantization: found 'fp8-current', expected a data type that"));
}

TEST(MachineCheck, MicroscalingNeedsUnitsThatScaleBlocks) {
  const auto hopper = machine::load_machine("dgx-h100");
  const auto blackwell = machine::load_machine("dgx-b200");
  ASSERT_TRUE(hopper && blackwell);
  EXPECT_TRUE(check_machine(recipe(Quantization::fp8_block), *hopper));
  for (const Quantization quantization : {Quantization::mxfp8, Quantization::nvfp4}) {
    EXPECT_TRUE(check_machine(recipe(quantization), *blackwell));
    const auto checked = check_machine(recipe(quantization), *hopper);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().to_string(),
                HasSubstr("the matrix units of H100-SXM5-80GB take no scales of blocks"));
  }
}

}  // namespace
}  // namespace orrery::plan
