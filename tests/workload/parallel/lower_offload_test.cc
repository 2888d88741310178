// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "cases.h"
#include "graph/workload.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"

namespace orrery::parallel {
namespace {

using cases::each_node;
using cases::kBoundary;
using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;

constexpr std::int64_t kAllOffloaded = 2 * kLayer + kEmbedding + kNorm;  // of small_gpt(2)

Tally host_copies(const graph::Workload& workload, const std::string& name) {
  Tally tally;
  each_node(workload, 0, [&](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::copy && node.name == name) {
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

/// Pieces round up to whole bytes.
void expect_host_bytes(const Tally& tally, std::int64_t bytes) {
  EXPECT_EQ(tally.count, 8);
  EXPECT_GE(tally.bytes, Bytes(bytes));
  EXPECT_LE(tally.bytes, Bytes(bytes + 8));
}

TEST(LowerOffload, TheHostUpdatesWhatTheDeviceWould) {
  // Per parameter: gradient 4 out; update 4 + 2 x 4 + 4 x 4 and the written copy 2; parameter 2
  // back.
  const graph::Workload workload =
      lowered(small_gpt(2), {.offload_optimizer = plan::Offload::cpu}, {.skip = {"fuse"}});
  expect_host_bytes(host_copies(workload, "gradients_to_host"), 4 * kAllOffloaded);
  expect_host_bytes(host_copies(workload, "host_adam"), 30 * kAllOffloaded);
  expect_host_bytes(host_copies(workload, "parameters_to_device"), 2 * kAllOffloaded);
  EXPECT_EQ(host_copies(workload, "read_states"), Tally{});
  EXPECT_EQ(cases::find_node(workload, "clip_gradients"), nullptr);
  EXPECT_EQ(cases::find_node(workload, "cast_parameters"), nullptr);
}

TEST(LowerOffload, StorageIsReadAndWrittenInTheTypesOfTheStates) {
  // Master 4 and two moments of 1 byte, read from and written to the third tier.
  const graph::Workload workload = lowered(small_gpt(2), {.offload_optimizer = plan::Offload::nvme,
                                                          .moment_type = graph::DataType::fp8});
  expect_host_bytes(host_copies(workload, "read_states"), 6 * kAllOffloaded);
  expect_host_bytes(host_copies(workload, "write_states"), 6 * kAllOffloaded);
  each_node(workload, 0, [](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::copy) {
      const bool storage = node.name == "read_states" || node.name == "write_states";
      EXPECT_EQ(node.tier, storage ? 2 : 1) << node.name;
    }
  });
}

TEST(LowerOffload, ZeroCopiesItsShareOnly) {
  plan::Plan plan{.dp = 4, .global_batch = 4, .zero = 1, .offload_optimizer = plan::Offload::cpu};
  const Tally gradients = host_copies(lowered(small_gpt(2), plan), "gradients_to_host");
  EXPECT_NEAR(static_cast<double>(gradients.bytes.value()), 4.0 * kAllOffloaded / 4, 16);
}

TEST(LowerOffload, ActivationsGoOutAndComeBack) {
  // With full recompute a layer keeps its input: a quarter of B S H, 3 layers, 2 microbatches.
  plan::Plan plan{
      .global_batch = 2, .recompute = plan::Recompute::full, .offload_activations = 0.25};
  const graph::Workload workload = lowered(small_gpt(3), plan);
  EXPECT_EQ(host_copies(workload, "store_activations"), (Tally{6, 6 * kBoundary / 4}));
  EXPECT_EQ(host_copies(workload, "load_activations"), (Tally{6, 6 * kBoundary / 4}));
}

TEST(LowerOffload, ALayerWaitsForTheCopyOfTheSecondOneBefore) {
  // Blocks: embedding, layers 1 .. 4, head. Layer 3 waits for the copy of layer 1.
  plan::Plan plan{.offload_activations = 1};
  const graph::Workload workload = lowered(small_gpt(4), plan, {.skip = {"fuse"}});
  const std::vector<graph::Node>& nodes = workload.program_of(0).templates[0].nodes;
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

RC_GTEST_PROP(LowerOffload, WhatGoesOutComesBack, ()) {
  cases::Case c = *cases::any_case();
  c.plan.offload_activations = *rc::gen::element(0.1, 0.5, 1.0);
  const graph::Workload workload = lowered(c.model, c.plan);
  RC_ASSERT(host_copies(workload, "store_activations") ==
            host_copies(workload, "load_activations"));
  RC_ASSERT(host_copies(workload, "store_activations").count > 0);
}

/// Returns the bytes that the layers of a rank of the first stage keep over the step.
Bytes kept_by_layers(const zoo::Model& model, const plan::Plan& plan) {
  const footprint::BlockMemories memories = footprint::block_memories(model, plan);
  const auto parts = plan::split_model(model, plan);
  Bytes kept{0};
  for (const plan::ModelPart& part : parts->front()) {
    for (const plan::BlockKind kind : plan::blocks_of(model, plan, part)) {
      kept += kind < plan::kFirstLayerBlock ? Bytes(0) : memories.blocks[kind].kept;
    }
  }
  return kept * plan::pipeline_shape(plan).microbatches;
}

RC_GTEST_PROP(LowerOffload, WhatMemoryKeepsGoesOut, ()) {
  // Also of layers that repeat some modules: an activation that runs again keeps its input, twice
  // as wide as the result that its GEMM would keep.
  cases::Case c = *cases::any_case();
  c.plan.recompute_layers = 0;
  c.plan.offload_activations = 1;
  c.plan.recompute = *rc::gen::element(plan::Recompute::none, plan::Recompute::full);
  c.plan.recompute_modules =
      c.plan.recompute == plan::Recompute::full
          ? ""
          : *rc::gen::element<std::string>("", "mlp", "layernorm", "layernorm,mlp");
  RC_PRE(plan::check(c.plan, c.model));
  RC_ASSERT(host_copies(lowered(c.model, c.plan), "store_activations").bytes.value() ==
            kept_by_layers(c.model, c.plan).value());
}

}  // namespace
}  // namespace orrery::parallel
