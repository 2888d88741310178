// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "machine/machine.h"
#include "workload/parallel/machine_check.h"

namespace orrery {
namespace {

using cases::each_node;
using cases::kBoundary;
using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;
using testing::HasSubstr;

constexpr std::int64_t kAll = 2 * kLayer + kEmbedding + kNorm;  // of small_gpt(2)

Tally copies(const Workload& workload, const std::string& name) {
  Tally tally;
  each_node(workload, 0, [&](const Node& node) {
    if (node.kind == Node::Kind::copy && node.name == name) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

/// Pieces round up to whole bytes.
void expect_bytes(const Tally& tally, std::int64_t bytes) {
  EXPECT_EQ(tally.count, 8);
  EXPECT_GE(tally.bytes, Bytes(bytes));
  EXPECT_LE(tally.bytes, Bytes(bytes + 8));
}

TEST(LowerOffload, TheHostUpdatesWhatTheDeviceWould) {
  // Per parameter: gradient 4 out; update 4 + 2 x 4 + 4 x 4 and the written copy 2; parameter 2
  // back.
  const Workload workload =
      lowered(small_gpt(2), {.offload_optimizer = Offload::cpu}, {.skip = {"fuse"}});
  expect_bytes(copies(workload, "gradients_to_host"), 4 * kAll);
  expect_bytes(copies(workload, "host_adam"), 30 * kAll);
  expect_bytes(copies(workload, "parameters_to_device"), 2 * kAll);
  EXPECT_EQ(copies(workload, "read_states"), Tally{});
  EXPECT_EQ(cases::find_node(workload, "clip_gradients"), nullptr);
  EXPECT_EQ(cases::find_node(workload, "cast_parameters"), nullptr);
}

TEST(LowerOffload, StorageIsReadAndWrittenInTheTypesOfTheStates) {
  // Master 4 and two moments of 1 byte, read from and written to the third tier.
  const Workload workload =
      lowered(small_gpt(2), {.offload_optimizer = Offload::nvme, .moment_type = DataType::fp8});
  expect_bytes(copies(workload, "read_states"), 6 * kAll);
  expect_bytes(copies(workload, "write_states"), 6 * kAll);
  each_node(workload, 0, [](const Node& node) {
    if (node.kind == Node::Kind::copy) {
      const bool storage = node.name == "read_states" || node.name == "write_states";
      EXPECT_EQ(node.tier, storage ? 2 : 1) << node.name;
    }
  });
}

TEST(LowerOffload, ZeroCopiesItsShareOnly) {
  Plan plan{.dp = 4, .global_batch = 4, .zero = 1, .offload_optimizer = Offload::cpu};
  const Tally gradients = copies(lowered(small_gpt(2), plan), "gradients_to_host");
  EXPECT_NEAR(static_cast<double>(gradients.bytes.value()), 4.0 * kAll / 4, 16);
}

TEST(LowerOffload, ActivationsGoOutAndComeBack) {
  // With full recompute a layer keeps its input: a quarter of B S H, 3 layers, 2 microbatches.
  Plan plan{.global_batch = 2, .recompute = Recompute::full, .offload_activations = 0.25};
  const Workload workload = lowered(small_gpt(3), plan);
  EXPECT_EQ(copies(workload, "store_activations"), (Tally{6, 6 * kBoundary / 4}));
  EXPECT_EQ(copies(workload, "load_activations"), (Tally{6, 6 * kBoundary / 4}));
}

TEST(LowerOffload, ALayerWaitsForTheCopyOfTheSecondOneBefore) {
  // Blocks: embedding, layers 1 .. 4, head. Layer 3 waits for the copy of layer 1.
  Plan plan{.offload_activations = 1};
  const Workload workload = lowered(small_gpt(4), plan, {.skip = {"fuse"}});
  const std::vector<Node>& nodes = workload.programs[0].templates[0].nodes;
  std::vector<int> stores;
  std::vector<int> layers;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const std::string& name = nodes[static_cast<std::size_t>(i)].name;
    if (name == "store_activations") {
      stores.push_back(i);
    } else if (name == "input_norm") {
      layers.push_back(i);
    }
  }
  ASSERT_EQ(stores.size(), 4);
  ASSERT_EQ(layers.size(), 4);
  EXPECT_TRUE(nodes[static_cast<std::size_t>(layers[1])].after.empty());
  EXPECT_EQ(nodes[static_cast<std::size_t>(layers[2])].after, std::vector<int>{stores[0]});
  EXPECT_EQ(nodes[static_cast<std::size_t>(layers[3])].after, std::vector<int>{stores[1]});
}

TEST(LowerOffload, TheMachineMustHaveTheTier) {
  auto machine = load_machine("dgx-a100-80g").value();
  machine.device.memory.resize(2);
  EXPECT_TRUE(check_machine({.offload_optimizer = Offload::cpu}, machine));
  const auto nvme = check_machine({.offload_optimizer = Offload::nvme}, machine);
  ASSERT_FALSE(nvme);
  EXPECT_THAT(nvme.error().to_string(),
              HasSubstr("offload_optimizer: found 'nvme', expected a machine with 3 memory tiers"));
  machine.device.memory.resize(1);
  EXPECT_FALSE(check_machine({.offload_activations = 0.5}, machine));
}

RC_GTEST_PROP(LowerOffload, WhatGoesOutComesBack, ()) {
  cases::Case c = *cases::any_case();
  c.plan.offload_activations = *rc::gen::element(0.1, 0.5, 1.0);
  const Workload workload = lowered(c.model, c.plan);
  RC_ASSERT(copies(workload, "store_activations") == copies(workload, "load_activations"));
  RC_ASSERT(copies(workload, "store_activations").count > 0);
}

// ---- Documents packed into sequences.

double attention_flops(const Plan& plan) {
  const auto blocks = block_operators(small_gpt(1), plan);
  double sum = 0;
  for (const ModelOperator& op : blocks[kFirstLayerBlock]) {
    sum += op.kind == OperatorKind::attention ? op.forward_flops.value() : 0;
  }
  return sum;
}

TEST(LowerDocuments, AttentionIsQuadraticInEachDocument) {
  // 128 = 64 + 32 + 32: (64^2 + 2 x 32^2) / 128^2 = 3/8 of the pairs.
  Plan plan{.attention = AttentionKernel::flash};
  const double whole = attention_flops(plan);
  plan.documents = "64, 32,32";
  EXPECT_DOUBLE_EQ(attention_flops(plan), whole * 3 / 8);
  EXPECT_TRUE(check(plan, small_gpt(1)));
  plan.documents = "128";
  EXPECT_DOUBLE_EQ(attention_flops(plan), whole);
}

TEST(LowerDocuments, RefusesOtherSumsAndKernelsThatComputeTheSquare) {
  const auto refusal = [](const Plan& plan) {
    const Result<void> checked = check(plan, small_gpt(1));
    return checked ? std::string() : checked.error().to_string();
  };
  Plan plan{.documents = "64,32"};
  EXPECT_THAT(refusal(plan), HasSubstr("lengths that sum to the sequence's 128 tokens (here 96)"));
  EXPECT_THAT(refusal(plan), HasSubstr("attention flash: unfused kernels compute the whole"));
  plan.documents = "64,,x,0";
  EXPECT_THAT(refusal(plan), HasSubstr("documents: found 'x', expected a length"));
  EXPECT_THAT(refusal(plan), HasSubstr("documents: found '0', expected a length"));
}

}  // namespace
}  // namespace orrery
