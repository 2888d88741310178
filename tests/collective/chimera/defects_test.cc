// SPDX-License-Identifier: Apache-2.0
/// Defects of the published program that change none of the published cycles, rebuilt from their
/// rules: D1, rings that leave their block, and D5, rings that go one way.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "collective/chimera/steps.h"

namespace orrery::chimera {
namespace {

using flit::Cycle;

/// A hop from node to node along one dimension, as the published program writes a ring: it goes to
/// the place before; the first of the *torus*, not of the block, goes to the block's last.
struct Hop {
  std::uint32_t source = 0;
  std::uint32_t meant = 0;
  std::uint32_t target = 0;
};

std::vector<Hop> ring_by_torus_coordinates(const Network& network, const Block& block,
                                           std::size_t dimension) {
  std::vector<Hop> hops;
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < dimension; ++d) {
    stride *= block.extents[d];
  }
  const std::int32_t n = block.extents[dimension];
  const Block whole{{0, 0, 0}, network.extents()};
  std::int32_t step = 1;
  for (std::size_t d = 0; d < dimension; ++d) {
    step *= whole.extents[d];
  }
  for (std::int32_t rank = 0; rank < block.ranks(); ++rank) {
    const std::int32_t place = rank / stride % n;
    const auto source = static_cast<std::int32_t>(network.node(block, rank));
    const bool first_of_torus = source / step % whole.extents[dimension] == 0;
    const std::int32_t target = first_of_torus ? source + (n - 1) * step : source - step;
    const std::int32_t meant = rank + ((place + n - 1) % n - place) * stride;
    hops.push_back({static_cast<std::uint32_t>(source), network.node(block, meant),
                    static_cast<std::uint32_t>(target)});
  }
  return hops;
}

/// Messages that leave the block, of how many; of all dimensions' rings.
std::pair<int, int> leaving(const Network& network, const Block& block) {
  std::set<std::uint32_t> own;
  for (std::int32_t rank = 0; rank < block.ranks(); ++rank) {
    own.insert(network.node(block, rank));
  }
  std::pair<int, int> count{0, 0};
  for (std::size_t d = 0; d < 3; ++d) {
    if (block.extents[d] > 1) {
      for (const Hop& hop : ring_by_torus_coordinates(network, block, d)) {
        count.first += own.contains(hop.target) ? 0 : 1;
        ++count.second;
      }
    }
  }
  return count;
}

/// x and y of a block's origin, then of its extents.
Block at(std::int32_t x, std::int32_t y, std::int32_t wide, std::int32_t high) {
  return {{x, y, 0}, {wide, high, 1}};
}

TEST(Defects, RingsByTorusCoordinatesLeaveTheirBlocks) {
  // Read from the artifact's event lists (D1): of a 2 x 2 group at y 0, x 2 of a 4 x 4 torus the
  // messages (2 -> 1) and (6 -> 5), 2 of 8; at (2, 2) 4 of 8; of 1 x 2 at (3, 2) and of 2 x 1 at
  // (2, 0) 1 of 2; of groups at the origin none.
  const Network torus(Topology::torus2d, {4, 4, 1});
  EXPECT_EQ(leaving(torus, at(0, 0, 2, 2)), std::pair(0, 8));
  EXPECT_EQ(leaving(torus, at(2, 0, 2, 2)), std::pair(2, 8));
  EXPECT_EQ(leaving(torus, at(2, 2, 2, 2)), std::pair(4, 8));
  EXPECT_EQ(leaving(torus, at(2, 3, 2, 1)), std::pair(1, 2));
  EXPECT_EQ(leaving(torus, at(0, 2, 1, 2)), std::pair(1, 2));
  const std::vector<Hop> x = ring_by_torus_coordinates(torus, at(2, 0, 2, 2), 0);
  EXPECT_EQ(x[0].source, 2U);
  EXPECT_EQ(x[0].target, 1U);
  EXPECT_EQ(x[2].source, 6U);
  EXPECT_EQ(x[2].target, 5U);
}

/// A reduce-scatter of 2 x 2 whose messages go where `hops` say; who was meant waits for them.
Cycle reduce_scatter(const Network& network, const Block& block, Bytes m, bool stray) {
  flit::LoopSchedule schedule;
  std::map<std::uint32_t, std::vector<std::uint32_t>> waits;
  std::int64_t parts = 1;
  for (std::size_t d = 0; d < 2; ++d) {
    parts *= block.extents[d];
    std::map<std::uint32_t, std::vector<std::uint32_t>> next;
    for (const Hop& hop : ring_by_torus_coordinates(network, block, d)) {
      schedule.push_back({.source = hop.source,
                          .target = stray ? hop.target : hop.meant,
                          .bytes = m / parts,
                          .after = waits[hop.source]});
      const auto arrived = static_cast<std::uint32_t>(schedule.size()) - 1;
      schedule.push_back({.source = hop.meant, .target = hop.meant, .work = 1, .after = {arrived}});
      next[hop.meant] = {arrived + 1};
    }
    waits = std::move(next);
  }
  return network.run(schedule).end;
}

TEST(Defects, MessagesThatLeaveTheirBlockTakeAsLong) {
  // One hop either way: F(M/2) + F(M/4) + 2 x 109 + 3 on torus and mesh, so D1 cannot be why the
  // published passes differ.
  for (const Topology topology : {Topology::torus2d, Topology::mesh2d}) {
    const Network network(topology, {4, 4, 1});
    for (const Block& block : {at(2, 0, 2, 2), at(2, 2, 2, 2)}) {
      Steps ours(network, {});
      ours.add(Operation::reduce_scatter, block, Bytes(65536), {});
      const Cycle right = network.run(ours.schedule()).end;
      EXPECT_EQ(right, 7 * (128 + 64) + 2 * 109 + 3);
      EXPECT_EQ(reduce_scatter(network, block, Bytes(65536), false), right);
      EXPECT_EQ(reduce_scatter(network, block, Bytes(65536), true), right);
    }
  }
}

TEST(Defects, RingsThatGoBothWaysGainLatencyOnly) {
  // D5: an all-gather around a row of a 4 x 4 torus is 3 steps of M/4 one way, or of M/8 both ways
  // at once. The links allow twice the rate, but a node puts one flit a cycle into its router, as
  // one way already does: 3 x 2 F(M/8) = 3 F(M/4) at least, and but for latencies no gain.
  const Network torus(Topology::torus2d, {4, 4, 1});
  const Block row = at(0, 0, 4, 1);
  for (const std::int64_t m : {65536LL, 4194304LL}) {
    Steps one_way(torus, {});
    one_way.add(Operation::all_gather, row, Bytes(m), {});
    flit::LoopSchedule both;
    std::vector<std::vector<std::uint32_t>> up(4);
    std::vector<std::vector<std::uint32_t>> down(4);
    for (int step = 0; step < 3; ++step) {
      for (const bool upward : {true, false}) {
        auto& waits = upward ? up : down;
        std::vector<std::vector<std::uint32_t>> next(4);
        for (std::uint32_t x = 0; x < 4; ++x) {
          const std::uint32_t target = upward ? (x + 1) % 4 : (x + 3) % 4;
          both.push_back({.source = x, .target = target, .bytes = Bytes(m / 8), .after = waits[x]});
          next[target] = {static_cast<std::uint32_t>(both.size()) - 1};
        }
        waits = std::move(next);
      }
    }
    const auto alone = static_cast<double>(torus.run(one_way.schedule()).end);
    const auto halved = static_cast<double>(torus.run(both).end);
    const std::int64_t quarter_flits = m / 4 / 256;
    const std::int64_t eighth_flits = m / 8 / 256;
    EXPECT_NEAR(alone, static_cast<double>(3 * (7 * quarter_flits + 109)), 1);
    EXPECT_GE(halved, static_cast<double>(3 * 2 * 7 * eighth_flits));
    EXPECT_LE(halved, alone);
    EXPECT_LT(alone / halved, m > 1000000 ? 1.01 : 1.2);
  }
}

}  // namespace
}  // namespace orrery::chimera
