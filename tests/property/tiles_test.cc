// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter that follows the tiles of a product, in pieces of a kernel, runs as the
// recurrence of its paper says (T3, arXiv 2401.16677): N ranks, V bytes in chunks of c = V/N, a
// product of G,
//
//   prod_k = (k+1) G/N ; arrive_0 = 0 ; link_free = 0
//   for k = 0..N-2:  s = max(prod_k, arrive_k, link_free)
//                    link_free = s + c/B ; arrive_{k+1} = link_free + a
//   fused = max(arrive_{N-1}, G) ; then the all-gather, which nothing hides
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../simulate/builder.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

struct Sublayer {
  std::int64_t ranks = 1;
  Time product{0};
  Bytes result{0};
  Bandwidth link{0};
  Time latency{0};

  Bytes chunk() const { return result / ranks; }
  Time hop() const { return latency + chunk() / link; }
  /// The time of the reduce-scatter alone, and of the all-gather.
  Time ring() const { return hop() * (ranks - 1); }
};

Time fused_by_recurrence(const Sublayer& of) {
  Time arrive{0};
  Time link_free{0};
  for (std::int64_t k = 0; k + 1 < of.ranks; ++k) {
    const Time made = Time(of.product.value() * (k + 1) / of.ranks);
    const Time start = std::max({made, arrive, link_free});
    link_free = start + of.chunk() / of.link;
    arrive = link_free + of.latency;
  }
  return std::max(arrive, of.product);
}

graph::Node product_node(const Sublayer& of, std::int32_t piece, std::int32_t pieces) {
  graph::Node node = compute_node("product", 1_ns);
  graph::Operator& op = node.operators.front();
  op = {.name = "product", .kind = graph::OperatorKind::gemm, .gemm = {}, .duration = of.product};
  op.piece = piece;
  op.pieces = pieces;
  return node;
}

graph::Node ring_step(std::string name, graph::CollectiveKind kind, Bytes bytes,
                      std::vector<int> after) {
  graph::Node node = collective_node(std::move(name), plan::Axis::tp, bytes, std::move(after));
  node.collective = kind;
  return node;
}

std::vector<graph::Node> one_after_the_other(const Sublayer& of) {
  return {product_node(of, 0, 1),
          ring_step("sum", graph::CollectiveKind::reduce_scatter, of.result, {0}),
          ring_step("gather", graph::CollectiveKind::all_gather, of.result, {1})};
}

std::vector<graph::Node> in_tiles(const Sublayer& of) {
  std::vector<graph::Node> nodes;
  const auto ranks = static_cast<int>(of.ranks);
  for (int k = 0; k < ranks; ++k) {
    nodes.push_back(product_node(of, k, ranks));
    if (k + 1 < ranks) {
      nodes.push_back(ring_step("tile", graph::CollectiveKind::send_recv, of.chunk(),
                                {static_cast<int>(nodes.size()) - 1}));
      nodes.back().by_engine = true;
    }
  }
  const int last = static_cast<int>(nodes.size()) - 1;
  nodes.push_back(
      ring_step("gather", graph::CollectiveKind::all_gather, of.result, {last - 1, last}));
  return nodes;
}

Time time_of(const Sublayer& of, std::vector<graph::Node> nodes, bool shortcuts = true) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, of.ranks)});
  machine.network.front().bandwidth = of.link;
  machine.network.front().latency = of.latency;
  simulate::SimulateOptions options;
  options.shortcuts = shortcuts;
  options.algorithms.fill(plan::kAxisCount, collective::CollectiveAlgorithm::ring);
  const graph::Workload workload = workload_of(
      {{{plan::Axis::tp, of.ranks}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {std::move(nodes)});
  const auto verified = graph::verify(workload);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().to_string());
  return simulate::simulate(workload, machine, options).value().step_time;
}

/// Tokens M, hidden size H, K' of a rank: published shapes, 16-bit elements, 0.75 of 114.7 TFLOP/s,
/// 75 GB/s and 500 ns a hop.
Sublayer published(std::int64_t ranks, double tokens, double hidden, double inner) {
  return {.ranks = ranks,
          .product = from_seconds(2 * tokens * hidden * inner / (114.688e12 * 0.75)),
          .result = Bytes(std::llround(2 * tokens * hidden)),
          .link = Bandwidth(75e9),
          .latency = 500_ns};
}

TEST(Tiles, RunAsTheRecurrenceSays) {
  for (const std::int64_t ranks : {2, 3, 8}) {
    for (const Time product : {10_us, 1_ms, 40_ms}) {
      const Sublayer of{.ranks = ranks,
                        .product = product,
                        .result = Bytes(1'200'000),
                        .link = 1_GBps,
                        .latency = 3_us};
      const Time fused = fused_by_recurrence(of);
      EXPECT_EQ(time_of(of, in_tiles(of)), fused + of.ring());
      EXPECT_EQ(time_of(of, in_tiles(of), false), fused + of.ring());
      // One chunk is always made before the ring starts.
      EXPECT_GE(fused + Time(1), std::max(product, product / ranks + of.ring()));
      EXPECT_EQ(time_of(of, one_after_the_other(of)), product + 2 * of.ring());
    }
  }
}

TEST(Tiles, PublishedSublayersTakeWhatTheFormulasSay) {
  // Mega-GPT-2 at TP 8, its OP (K' = H/8) and FC-2 (4 H/8); T-NLG at TP 16, its FC-2 (4 H/16):
  // product and ring in ms, and the most that overlap can gain, (G + R + A)/(max(G, R) + A).
  struct Case {
    Sublayer of;
    double product, ring, ideal;
  };
  for (const Case& c : {Case{published(8, 16384, 3072, 384), 0.449, 1.178, 1.191},
                        Case{published(8, 16384, 3072, 1536), 1.798, 1.178, 1.396},
                        Case{published(16, 8192, 4256, 1064), 0.863, 0.879, 1.491}}) {
    const Time apart = time_of(c.of, one_after_the_other(c.of));
    const Time tiled = time_of(c.of, in_tiles(c.of));
    EXPECT_NEAR(to_seconds(c.of.product) * 1e3, c.product, 5e-4);
    EXPECT_NEAR(to_seconds(apart - c.of.product) * 1e3 / 2, c.ring, 5e-4);
    const double ideal = apart / (std::max(c.of.product, c.of.ring()) + c.of.ring());
    EXPECT_NEAR(ideal, c.ideal, 5e-4);
    EXPECT_LE(apart / tiled, ideal);
    EXPECT_GT(apart / tiled, 1);
  }
}

TEST(Tiles, PiecesBackToBackTakeTheTimeOfTheKernel) {
  // With a host that dispatches in 3 us, one kernel or nine pieces of it, alone and one after one.
  const Sublayer of{.ranks = 2, .product = Time(1'234'567), .result = Bytes(8), .link = 1_GBps};
  const auto run = [&](std::int32_t pieces) {
    std::vector<graph::Node> nodes;
    for (std::int32_t i = 0; i < pieces; ++i) {
      nodes.push_back(product_node(of, i, pieces));
      nodes.back().operators.front().kernels = i == 0 ? 1 : 0;
    }
    graph::Workload workload = workload_of(
        {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {std::move(nodes)}, 5);
    workload.host_dispatch = 3_us;
    return simulate::simulate(workload,
                              machine_of({dimension(topology::DimensionKind::switched, 2)}))
        .value()
        .step_time;
  };
  EXPECT_EQ(run(1), 5 * 3_us + of.product);  // the host limits
  EXPECT_EQ(run(9), run(1));
}

}  // namespace
}  // namespace orrery
