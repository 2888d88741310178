// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/machine_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spmd/fixed.h"
#include "planner/spmd/kernel_shape.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/signatures.h"
#include "published.h"

namespace orrery::spmd {
namespace {

MachinePrices prices_on(const std::string& name, std::int64_t devices,
                        Overlap overlap = Overlap::both) {
  const auto machine = machine::load_machine(name);
  return MachinePrices::make(machine.value(), devices, overlap).value();
}

int tensor_named(const OperatorGraph& graph, const std::string& node) {
  for (const Node& n : graph.nodes) {
    if (n.name == node) {
      return n.outputs.front();
    }
  }
  return -1;
}

TEST(MachinePrices, OneDeviceComputesBothHalvesForwardAndTwiceThatBackward) {
  // No defect of the last stage: 2 halves x (1 + 2), whatever hides, as nothing is communicated;
  // and the optimizer.
  const OperatorGraph graph = model("Rmoe", 1, 3);
  for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
    const MachinePrices prices = prices_on("dgx-h100", 1, overlap);
    const Solution solution = search(graph, prices).value();
    Time sum(0);
    for (const Stage& stage : solution.strategy.stages) {
      for (const Computation& computation : stage.computations) {
        const auto node = static_cast<std::size_t>(computation.node);
        sum += prices.compute(
            graph, computation.node,
            graph.nodes[node].signatures[static_cast<std::size_t>(computation.signature)]);
      }
    }
    const StrategyCost cost = replay(graph, solution.strategy, prices).value();
    EXPECT_EQ(solution.total, 6 * sum + cost.penalty);
  }
}

TEST(MachinePrices, TheOptimizerReadsAndWritesWhatADeviceHolds) {
  // Gradient, weight and two moments read, the last three written: 7 x 4 bytes of each of 3072 x
  // 768 weights at 0.787 of 900 GB/s; an eighth of it where it is sliced; activations nothing.
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const MachinePrices prices = prices_on("dgx-1-v100", 8);
  const int weight = tensor_named(graph, "layers_0_linear1_weight");
  const Time whole = prices.penalty(graph, weight, Form::replicate(), false);
  EXPECT_NEAR(to_seconds(whole), 28.0 * 3072 * 768 / (0.787 * 900e9), 1e-9);
  EXPECT_NEAR(to_seconds(prices.penalty(graph, weight, Form::gather(1), false)),
              to_seconds(whole) / 8, 1e-9);
  EXPECT_EQ(prices.penalty(graph, weight, Form::full(), true), Time(0));
  EXPECT_EQ(prices.penalty(graph, tensor_named(graph, "relu"), Form::full(), false), Time(0));
}

TEST(MachinePrices, ChargeEveryGradientOnce) {
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const MachinePrices prices = prices_on("dgx-h100", 8);
  // A slice of an activation: its gradient costs an all-gather of a half-batch, for both halves.
  const StageWork slice =
      prices.convert(graph, tensor_named(graph, "relu"), Form::full(), Form::gather(0));
  const StageWork gather =
      prices.convert(graph, tensor_named(graph, "relu"), Form::gather(0), Form::full());
  EXPECT_EQ(slice.forward_1, Time(0));
  EXPECT_EQ(slice.backward_1, gather.forward_1);
  EXPECT_EQ(slice.backward_2, gather.forward_2);
  EXPECT_GT(slice.backward_1, Time(0));
  // A parameter: once, not for each half.
  const StageWork weight = prices.convert(graph, tensor_named(graph, "layers_0_linear1_weight"),
                                          Form::gather(0), Form::full());
  EXPECT_GT(weight.forward_1, Time(0));
  EXPECT_GT(weight.backward_1, Time(0));
  EXPECT_EQ(weight.forward_2, Time(0));
  EXPECT_EQ(weight.backward_2, Time(0));
  // A buffer and an input: no gradient.
  for (const char* name : {"pe", "src_mask", "x"}) {
    const StageWork work =
        prices.convert(graph, tensor_named(graph, name), Form::gather(0), Form::full());
    EXPECT_EQ(work.backward_1 + work.backward_2, Time(0)) << name;
  }
}

TEST(MachinePrices, AllToAllMovesASliceNotTheWhole) {
  // On one switch every device sends 7/8 of its slice; an all-gather receives 7 slices.
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const MachinePrices prices = prices_on("dgx-h100", 8);
  const int tensor = tensor_named(graph, "layer_norm");
  const Time exchange = prices.convert(graph, tensor, Form::gather(0), Form::gather(2)).forward_1;
  const Time gather = prices.convert(graph, tensor, Form::gather(0), Form::full()).forward_1;
  EXPECT_LT(exchange, gather);
  EXPECT_GT(8 * exchange, gather / 2);
}

TEST(MachinePrices, CountAttentionsProjectionsAndNoMoreGatingThanThereIs) {
  // Published: projections nothing, gating 10 b s d E C. Ours: 8 L n d^2 and 2 b s d E.
  const OperatorGraph graph = model("Rmoe", 8, 2);
  Flops all(0);
  Flops gating(0);
  Flops attention(0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Flops flops = MachinePrices::flops_of(graph, static_cast<int>(i));
    all += flops;
    gating += graph.nodes[i].op == "top_2_gating" ? flops : Flops(0);
    attention += graph.nodes[i].op == "attention" ? flops : Flops(0);
  }
  EXPECT_EQ(gating.value(), 2.0 * 256 * 128 * 768 * 16);
  EXPECT_EQ(attention.value(), 2 * (8.0 * 128 * 256 * 768 * 768 + 4.0 * 128 * 128 * 256 * 768));
  EXPECT_LT(gating / all, 0.001);
}

TEST(MachinePrices, KernelsHaveTheExtentsOfADevicesPart) {
  // linear1 of half of 256 x 128 tokens on 8 devices: 16 x 128 rows where the batch is sliced, 384
  // of 3072 columns of 128 x 128 rows where the weight is. Two of 16 experts, 20 slots of 128
  // samples.
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const auto node_named = [&](const std::string& name) -> const Node& {
    return *std::find_if(graph.nodes.begin(), graph.nodes.end(),
                         [&](const Node& node) { return node.name == name; });
  };
  const Form full = Form::full();
  const Form first = Form::gather(0);
  const auto gemm = [&](const std::string& name, const Signature& signature) {
    const KernelShape shape = kernel_shape(graph, node_named(name), {{&signature, 8}}, 2);
    EXPECT_EQ(shape.kind, graph::OperatorKind::gemm);
    return shape.gemm;
  };
  EXPECT_EQ(gemm("linear", {{first, full, full}, {first}}), (graph::GemmShape{1, 2048, 3072, 768}));
  EXPECT_EQ(gemm("linear", {{full, first, first}, {Form::gather(2)}}),
            (graph::GemmShape{1, 16384, 384, 768}));
  EXPECT_EQ(gemm("einsum_1", {{first, Form::gather(1)}, {Form::gather(1)}}),
            (graph::GemmShape{2, 2560, 3072, 768}));
}

/// Checks every product in every way that divides it evenly.
void products_do_their_share(const OperatorGraph& graph, std::int64_t devices) {
  const MachinePrices prices = prices_on("dgx-h100", devices);
  int products = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Signature& signature : graph.nodes[i].signatures) {
      if (graph.nodes[i].kind != NodeKind::op ||
          !prices.allows(graph, static_cast<int>(i), signature)) {
        continue;
      }
      const graph::Operator kernel = prices.kernel(graph, static_cast<int>(i), signature);
      if (kernel.kind == graph::OperatorKind::gemm) {
        EXPECT_NEAR(graph::flops_of(kernel.gemm) / kernel.flops, 1, 1e-9)
            << graph.nodes[i].name << " " << to_string(signature);
        ++products;
      }
    }
  }
  EXPECT_GT(products, 20);
}

TEST(MachinePrices, ProductsDoTheirShareOfTheFlops) {
  products_do_their_share(model("Rmoe", 8, 2), 8);
  products_do_their_share(model("Vswitch", 16, 2), 16);
}

TEST(MachinePrices, AllowNothingUnsoundAndNoUnevenSlices) {
  const OperatorGraph graph = model("Rswitch", 5, 2);  // 768 is no multiple of 5
  const MachinePrices prices = prices_on("dgx-h100", 5);
  const Solution solution = search(graph, prices).value();
  for (const Stage& stage : solution.strategy.stages) {
    for (const Computation& computation : stage.computations) {
      const Node& node = graph.nodes[static_cast<std::size_t>(computation.node)];
      const Signature& signature = node.signatures[static_cast<std::size_t>(computation.signature)];
      EXPECT_TRUE(is_sound(node.op, signature));
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        const Shape& shape = graph.tensors[static_cast<std::size_t>(node.outputs[k])].shape;
        const Form form = signature.outputs[k];
        EXPECT_TRUE(!form.is_gather() || shape[static_cast<std::size_t>(form.dimension())] % 5 == 0)
            << node.name;
      }
    }
  }
}

void no_well_known_strategy_is_faster(const char* name, std::int64_t devices) {
  const OperatorGraph graph = model(name, devices, 6);
  const MachinePrices prices = prices_on("dgx-a100-80g", devices);
  const Solution best = search(graph, prices).value();
  EXPECT_EQ(best.total, search(graph, prices, {.skip_periods = false})->total);
  EXPECT_EQ(best.total, replay(graph, best.strategy, prices)->total);
  for (const auto& row : kNames<FixedStrategy>) {
    const auto other = search(graph, prices, {.allowed = restriction(row.value)});
    EXPECT_TRUE(!other || best.total <= other->total) << row.name;
  }
}

TEST(MachinePrices, SearchIsNeverSlowerThanWellKnownStrategies) {
  for (const char* name : {"Rmoe", "Vswitch"}) {
    for (const std::int64_t devices : {8, 64}) {
      no_well_known_strategy_is_faster(name, devices);
    }
  }
}

TEST(MachinePrices, NeedsAMachineOfSoManyDevices) {
  const auto machine = machine::load_machine("dgx-h100").value();
  EXPECT_FALSE(MachinePrices::make(machine, 12, Overlap::both));
}

TEST(MemoryLimit, IsKeptWithABoundBelow) {
  const OperatorGraph graph = model("Rmoe", 8, 4);
  const MachinePrices prices = prices_on("dgx-a100-80g", 8);
  const Solution free = search(graph, prices).value();
  const Bytes most = memory_of(graph, free.strategy, 8);
  Time before = free.total;
  for (const double share : {1.0, 0.985, 0.975}) {
    const auto found = search_within(graph, prices, 8, most * share);
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_LE(found->memory, most * share);
    EXPECT_EQ(found->memory, memory_of(graph, found->solution.strategy, 8));
    EXPECT_GE(found->solution.total, before);
    EXPECT_LE(found->bound, found->solution.total);
    EXPECT_GE(found->bound, free.total);
    before = found->solution.total;
  }
  EXPECT_EQ(search_within(graph, prices, 8, most)->bound, free.total);
  const auto none = search_within(graph, prices, 8, 1_GiB);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), ::testing::HasSubstr("every program needs"));
}

}  // namespace
}  // namespace orrery::spmd
