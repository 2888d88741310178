// SPDX-License-Identifier: Apache-2.0
#include "graph/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <random>
#include <tuple>

#include "collective/layout/convert.h"
#include "collective/layout/move.h"
#include "collective/layout/packing.h"
#include "collective/layout/pairs.h"

namespace orrery::layout {
namespace {

double bytes_of(const PairCase& one, const std::vector<Step>& steps) {
  return total_cost(one.problem, steps, byte_cost(one.problem.mesh));
}

std::vector<Step> fused(const PairCase& one) {
  const auto steps = cheapest(one.problem, byte_cost(one.problem.mesh));
  EXPECT_TRUE(steps.has_value());
  return steps.value_or(std::vector<Step>());
}

/// The bytes of pairs.h, at sizes that divide.
TEST(Fusion, TheSixPublishedPairsByTheirBytes) {
  for (const std::int64_t n : {2, 4, 8}) {
    for (const std::int64_t d : {1, 2}) {
      const PairSizes sizes{.ranks = n, .dp = d, .tokens = 128, .width = 64, .copies = 2};
      const double m = 128 * 64 * 4;
      const auto ranks = static_cast<double>(n);
      const double ag = m * (ranks - 1) / ranks;
      const double in_dp = ranks / static_cast<double>(d);
      const double ag_dp = m * (in_dp - 1) / in_dp;
      const double part = m * 2 * static_cast<double>(d) / ranks;  // Mkd/N
      const double a2a = part * (ranks - 1) / ranks;
      const auto expect = [&](Pair pair, double base, double less) {
        SCOPED_TRACE(name_of(pair));
        const PairCase one = pair_case(pair, sizes);
        EXPECT_DOUBLE_EQ(bytes_of(one, one.base), base);
        EXPECT_DOUBLE_EQ(bytes_of(one, fused(one)), less);
      };
      expect(Pair::tp_sp, 2 * ag, ag);
      expect(Pair::tp_pp, 2 * ag + m / ranks + ag, ag + m / ranks + ag);
      expect(Pair::tp_ep, 2 * ag_dp + a2a, ag_dp + a2a);
      expect(Pair::pp_ep, m + a2a, part);
      expect(Pair::sp_pp, ag + m, m / ranks);
      expect(Pair::sp_ep, ag_dp + a2a, a2a);
    }
  }
}

TEST(Fusion, AsPublishedTheSixPairsSendWhatTheSearchSends) {
  for (const std::int64_t d : {1, 2}) {
    for (const auto& [pair, name, sentence] : kNames<Pair>) {
      SCOPED_TRACE(name);
      const PairCase one =
          pair_case(pair, {.ranks = 4, .dp = d, .tokens = 128, .width = 64, .copies = 2});
      EXPECT_DOUBLE_EQ(bytes_of(one, one.fused), bytes_of(one, fused(one)));
    }
  }
}

/// 2 stages of `ranks` on a switch of 1 GB/s whose ports reach `share` of it with 3 peers or more.
machine::Machine crowded_switch(std::int64_t ranks, double share) {
  topology::NetworkDimension ports;
  ports.name = "switch";
  ports.size = 2 * ranks;
  ports.bandwidth = 1_GBps;
  if (share < 1) {
    ports.bandwidth_by_peers = {{.peers = 3, .share = share}};
  }
  machine::Machine machine;
  machine.network.push_back(ports);
  return machine;
}

TEST(Fusion, FusionLosesWhereManyPeersAtOnceReachLess) {
  // pp+ep, N = 4, k = 16, M = 1 MB: P2P 1 MB from one peer, an exchange of 3 MB with 3 peers, or a
  // many_to_many of 4 MB with 4. Alone 4 ms either way; at half 1 + 6 ms against 8: 0.875 x.
  const PairCase one = pair_case(
      Pair::pp_ep, {.ranks = 4, .tokens = 1000, .width = 1000, .copies = 16, .element = Bytes(1)});
  for (const auto& [share, base, fused] : {std::tuple{1.0, 4e-3, 4e-3}, {0.5, 7e-3, 8e-3}}) {
    const Cost seconds = machine_cost(one.problem.mesh, crowded_switch(4, share));
    EXPECT_NEAR(total_cost(one.problem, one.base, seconds), base, 1e-9);
    EXPECT_NEAR(total_cost(one.problem, one.fused, seconds), fused, 1e-9);
    const auto found = cheapest(one.problem, seconds);
    ASSERT_TRUE(found);
    EXPECT_LE(total_cost(one.problem, *found, seconds), base + 1e-9);  // then it does not fuse
  }
}

TEST(Fusion, TimesBeyondTheClockAreSaid) {
  // Any byte over 1e-300 B/s takes more than 106 days; with the machine's own bandwidth none does.
  const PairCase one = pair_case(Pair::tp_sp, {.ranks = 4, .tokens = 64, .width = 64});
  machine::Machine machine = machine::load_machine("rtx4080-pcie4-8").value();
  const auto late = [&] {
    return beyond_time("tp+sp", one.problem, one.base, machine_cost(one.problem.mesh, machine));
  };
  EXPECT_TRUE(late().empty());
  machine.network[0].bandwidth = Bandwidth(1e-300);
  EXPECT_EQ(late().to_string(), "tp+sp: takes longer than 106 days, the range of simulated time");
}

/// Memory of 1 GB/s whose streaming kernels reach all of it.
compute::Device plain_device() {
  compute::Device device;
  device.memory.push_back({.name = "memory", .bandwidth = 1_GBps});
  device.kernels.elementwise_share = 1;
  device.kernels.stream_launch = 1_us;
  return device;
}

// A tensor of 8 x 64 elements of 2 bytes on 4 ranks.
TEST(Packing, IsOfPiecesThatAreNoRunOfMemory) {
  const Mesh mesh{.axes = {{"tp", 4}}};
  const Shape shape{.extents = {8, 64}, .element = Bytes(2)};
  const auto packing = [&](Operation operation, Placement from, Placement to) {
    return packing_of({.operation = operation, .from = {from}, .to = {to}}, shape, mesh,
                      plain_device());
  };
  // Rows come one after the other, and so do the parts of a gather along them.
  EXPECT_EQ(packing(Operation::all_gather, Placement::shard(0), Placement::replicate()).time,
            Time(0));
  // Columns: 4 pieces of 8 rows of 32 B, read once and written in whole sectors: 2048 B.
  const Packing columns =
      packing(Operation::all_gather, Placement::shard(1), Placement::replicate());
  EXPECT_EQ(columns.blocks, 32);
  EXPECT_EQ(columns.block, Bytes(32));
  EXPECT_EQ(columns.time, 1_us + Bytes(2048) / 1_GBps);
  // Sums leave as columns, and arrive whole: the sender packs alone.
  EXPECT_EQ(packing(Operation::reduce_scatter, Placement::partial(), Placement::shard(1)).time,
            columns.time);
  // An exchange sends whole rows' columns (2 rows of 32 B to each of 4, packed) and what arrives
  // are whole rows: 8 blocks, 512 B.
  const Packing exchange = packing(Operation::all_to_all, Placement::shard(0), Placement::shard(1));
  EXPECT_EQ(exchange.blocks, 8);
  EXPECT_EQ(exchange.time, 1_us + Bytes(512) / 1_GBps);
  EXPECT_EQ(packing(Operation::all_reduce, Placement::partial(), Placement::replicate()).time,
            Time(0));
}

// Columns are no run where rows are whole, before an exchange or after the one back; tokens are.
TEST(Packing, PassesOfAnExchangeAreOnTheSideOfWholeRows) {
  const Placement tokens = Placement::shard(0);
  const Placement columns = Placement::shard(1);
  EXPECT_EQ(packing_passes(Operation::all_to_all, tokens, columns), (Passes{2.0, 0.0}));
  EXPECT_EQ(packing_passes(Operation::all_to_all, columns, tokens), (Passes{0.0, 2.0}));
  EXPECT_EQ(packing_passes(Operation::all_gather, tokens, Placement::replicate()),
            (Passes{0.0, 0.0}));
  EXPECT_EQ(packing_passes(Operation::reduce_scatter, Placement::partial(), tokens),
            (Passes{0.0, 0.0}));
}

// Columns of 2 bytes fill a sixteenth of the sectors that they are written to.
TEST(Packing, ShortBlocksMoveWholeSectors) {
  const Packing packing =
      packing_of({.operation = Operation::all_gather,
                  .from = {Placement::shard(1)},
                  .to = {Placement::replicate()}},
                 {.extents = {8, 4}, .element = Bytes(2)}, {.axes = {{"tp", 4}}}, plain_device());
  EXPECT_EQ(packing.blocks, 32);
  EXPECT_EQ(packing.time, 1_us + Bytes(32 * 2 + 32 * 32) / 1_GBps);
}

TEST(Fusion, OnNvSwitchTheMeasuredSharesMakePpEpSlowerThanNotFused) {
  // An exchange and a many_to_many of 16 experts a token over 4 H100 (examples/chimera/
  // nvswitch_peers.yaml): 1.01 x with ports that reach everything, 0.97 x with 0.927 of it for 3
  // peers (fitted to NCCL's all-to-all and send_recv, docs/models/fusion.md).
  topology::NetworkDimension nvlink;
  nvlink.name = "nvlink";
  nvlink.size = 8;
  nvlink.bandwidth = 450_GBps;
  nvlink.latency = 1_us;
  nvlink.message_overhead = 8_us;
  nvlink.send_efficiency = 0.778;
  nvlink.exchange = {{.name = "Simple",
                      .launch = from_seconds(14.5e-6),
                      .step_latency = from_seconds(0.08e-6),
                      .efficiency = 0.778,
                      .local_copy = 0.335}};
  const PairCase one = pair_case(
      Pair::pp_ep, {.ranks = 4, .tokens = 8192, .width = 7168, .copies = 16, .element = Bytes(2)});
  const auto speedup = [&] {
    machine::Machine machine;
    machine.network.push_back(nvlink);
    const Cost seconds = machine_cost(one.problem.mesh, machine);
    return total_cost(one.problem, one.base, seconds) / total_cost(one.problem, one.fused, seconds);
  };
  EXPECT_GT(speedup(), 1);
  nvlink.bandwidth_by_peers = {{.peers = 3, .share = 0.927}, {.peers = 7, .share = 0.877}};
  EXPECT_LT(speedup(), 0.98);
}

TEST(Fusion, SearchFindsThePublishedOperators) {
  const auto operations = [](Pair pair) {
    std::vector<Operation> list;
    for (const Step& step :
         fused(pair_case(pair, {.ranks = 4, .dp = 2, .tokens = 64, .width = 64, .copies = 2}))) {
      if (moves(step.operation)) {
        list.push_back(step.operation);
      }
    }
    return list;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(operations(Pair::tp_sp), ElementsAre(Operation::reduce_scatter));
  // RS and a many-to-many that sends every slice to every target: as many bytes as RS, M2M, AG.
  EXPECT_THAT(operations(Pair::tp_pp),
              ElementsAre(Operation::reduce_scatter, Operation::many_to_many));
  EXPECT_THAT(operations(Pair::tp_ep),
              ElementsAre(Operation::reduce_scatter, Operation::all_to_all));
  EXPECT_THAT(operations(Pair::pp_ep), ElementsAre(Operation::many_to_many));
  EXPECT_THAT(operations(Pair::sp_pp), ElementsAre(Operation::many_to_many));
  EXPECT_THAT(operations(Pair::sp_ep), ElementsAre(Operation::all_to_all));
}

/// Work of an expert layer's gate: every element of the result reads its whole token, by a sum that
/// depends on the order of its parts, and is not linear.
double gate(const std::array<std::int64_t, Shape::kMost>& at, std::span<const double> token) {
  double sum = static_cast<double>(at[1]);
  for (const double value : token) {
    sum += value * value;
  }
  return sum * token[static_cast<std::size_t>(at[1]) % token.size()];
}

std::vector<Part> start(const Problem& problem, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto elements =
      static_cast<std::size_t>(problem.shape.bytes().value() / problem.shape.element.value());
  const bool sums = std::any_of(problem.from.begin(), problem.from.end(), [](const Placement& p) {
    return p.kind == Placement::Kind::partial;
  });
  std::vector<std::vector<double>> partial_sums(
      sums ? static_cast<std::size_t>(problem.mesh.ranks()) : 1);
  for (std::vector<double>& values : partial_sums) {
    for (std::size_t i = 0; i < elements; ++i) {
      values.push_back(uniform(random));
    }
  }
  return scattered(problem.shape, problem.mesh, problem.from, partial_sums);
}

void expect_equal_bits(const std::vector<Part>& a, const std::vector<Part>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    ASSERT_EQ(a[rank].values.size(), b[rank].values.size()) << "rank " << rank;
    for (std::size_t i = 0; i < a[rank].values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(a[rank].values[i]),
                std::bit_cast<std::uint64_t>(b[rank].values[i]))
          << "rank " << rank << " element " << i;
    }
  }
}

TEST(Fusion, FusedAndBaseAreEqualBitForBitForEveryPairAndSize) {
  int cases = 0;
  for (const Named<Pair>& pair : kNames<Pair>) {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8}) {
      for (const std::int64_t d : {1, 2, 3}) {
        if (n % d != 0) {
          continue;
        }
        for (const auto& [tokens, width] :
             {std::pair<std::int64_t, std::int64_t>{8, 8}, {13, 7}, {3, 5}}) {
          SCOPED_TRACE(std::string(pair.name) + " N " + std::to_string(n) + " d " +
                       std::to_string(d) + " tokens " + std::to_string(tokens));
          const PairCase one = pair_case(
              pair.value, {.ranks = n, .dp = d, .tokens = tokens, .width = width, .copies = 2});
          const std::vector<Part> begin = start(one.problem, 7);
          const auto base = move(begin, one.base, one.problem, gate);
          ASSERT_TRUE(base) << base.error().to_string();
          for (const std::vector<Step>& sequence : {fused(one), one.fused}) {
            const auto less = move(begin, sequence, one.problem, gate);
            ASSERT_TRUE(less) << less.error().to_string();
            expect_equal_bits(*base, *less);
          }
          EXPECT_LE(bytes_of(one, fused(one)), bytes_of(one, one.base));
          ++cases;
        }
      }
    }
  }
  EXPECT_GT(cases, 200);
}

TEST(Fusion, SumsOfThreeByHand) {
  // Ranks 0, 1, 2 hold 1, 10, 100 times (1, 2, 3): sums 111, 222, 333, one element each.
  const Problem problem{
      {{{"tp", 3}}}, {{3}, Bytes(4)}, {}, {Placement::partial()}, {Placement::shard(0)}};
  const auto ranks = scattered(problem.shape, problem.mesh, problem.from,
                               {{1, 2, 3}, {10, 20, 30}, {100, 200, 300}});
  const auto steps = cheapest(problem, byte_cost(problem.mesh));
  ASSERT_TRUE(steps);
  const auto after = move(ranks, *steps, problem);
  ASSERT_TRUE(after);
  EXPECT_EQ((*after)[0].values, std::vector<double>{111});
  EXPECT_EQ((*after)[1].values, std::vector<double>{222});
  EXPECT_EQ((*after)[2].values, std::vector<double>{333});
}

TEST(Fusion, WorkOnSummandsIsRefused) {
  PairCase one = pair_case(Pair::tp_ep, {.ranks = 2, .tokens = 4, .width = 4, .copies = 2});
  const Layout sums = one.problem.from;
  const std::vector<Step> early{{Operation::apply, sums, sums, false}};
  const auto moved = move(start(one.problem, 1), early, one.problem, gate);
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().to_string(), ::testing::HasSubstr("summands"));
  EXPECT_FALSE(can_apply(*one.problem.work, {Placement::shard(1), Placement::replicate()}));
}

TEST(Fusion, CopiesNeverBecomeSummands) {
  const Problem problem{
      {{{"tp", 2}}}, {{4}, Bytes(4)}, {}, {Placement::replicate()}, {Placement::partial()}};
  EXPECT_FALSE(cheapest(problem, byte_cost(problem.mesh)));
}

TEST(Fusion, NestedSlicesComeOffInOrder) {
  // dp cuts dimension 0 first, tp cuts its parts: gathering dp alone would leave holes.
  const Layout both{Placement::shard(0), Placement::shard(0)};
  EXPECT_FALSE(step_between(both, {Placement::shard(0), Placement::replicate()}));
  EXPECT_TRUE(step_between(both, {Placement::replicate(), Placement::shard(0)}));
}

Layout any_layout(const Mesh& mesh, bool sums, int at) {
  Layout layout;
  for (const graph::MeshAxis& axis : mesh.axes) {
    if (axis.name == "pp") {
      layout.push_back(Placement::only(at));
      continue;
    }
    const int kind = *rc::gen::inRange(0, sums ? 4 : 3);
    layout.push_back(kind == 0   ? Placement::replicate()
                     : kind == 3 ? Placement::partial()
                                 : Placement::shard(kind - 1));
  }
  return layout;
}

RC_GTEST_PROP(Fusion, AnySequenceLeavesEachRankWhatTheLayoutSays, ()) {
  Problem problem;
  problem.mesh.axes = {{"tp", *rc::gen::inRange<std::int64_t>(1, 4)},
                       {"dp", *rc::gen::inRange<std::int64_t>(1, 4)}};
  if (*rc::gen::arbitrary<bool>()) {
    problem.mesh.axes.push_back({"pp", 2});
  }
  problem.shape = {{*rc::gen::inRange<std::int64_t>(1, 9), *rc::gen::inRange<std::int64_t>(1, 9)},
                   Bytes(4)};
  problem.from = any_layout(problem.mesh, true, 0);
  problem.to = any_layout(problem.mesh, false, *rc::gen::inRange(0, 2));
  const auto steps = cheapest(problem, byte_cost(problem.mesh));
  RC_ASSERT(steps.has_value());
  // Whole numbers, whose sums are exact in any order. Summand of rank r: (r + 1) (index + 1).
  const auto elements =
      static_cast<std::size_t>(problem.shape.extents[0] * problem.shape.extents[1]);
  const std::int64_t ranks = problem.mesh.ranks();
  std::vector<std::vector<double>> partial_sums(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0; r < ranks; ++r) {
    double own = 1;  // copies are equal: a factor of the axes with summands alone
    for (std::size_t axis = 0; axis < problem.from.size(); ++axis) {
      if (problem.from[axis].kind == Placement::Kind::partial) {
        own *= static_cast<double>(problem.mesh.coordinate(r, axis) + 1);
      }
    }
    for (std::size_t i = 0; i < elements; ++i) {
      partial_sums[static_cast<std::size_t>(r)].push_back(own * static_cast<double>(i + 1));
    }
  }
  double factor = 1;
  for (std::size_t axis = 0; axis < problem.from.size(); ++axis) {
    if (problem.from[axis].kind == Placement::Kind::partial) {
      const auto n = static_cast<double>(problem.mesh.axes[axis].size);
      factor *= n * (n + 1) / 2;
    }
  }
  const auto after =
      move(scattered(problem.shape, problem.mesh, problem.from, partial_sums), *steps, problem);
  if (!after) {
    RC_LOG(after.error().to_string());
  }
  RC_ASSERT(after.has_value());
  std::vector<double> sum;
  for (std::size_t i = 0; i < elements; ++i) {
    sum.push_back(factor * static_cast<double>(i + 1));
  }
  const auto due = scattered(problem.shape, problem.mesh, problem.to, {sum});
  for (std::size_t r = 0; r < due.size(); ++r) {
    RC_ASSERT((*after)[r].values == due[r].values);
  }
}

}  // namespace
}  // namespace orrery::layout
