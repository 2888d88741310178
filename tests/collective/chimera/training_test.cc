// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orrery::chimera {
namespace {

using layout::Pair;

TrainingRun run(const Training& training) {
  Prices prices;
  return run_training(training, prices);
}

TEST(Training, ProductsOfGpt2MediumAreThePublishedOnes) {
  // Published cycles of the array, each product one less (SCALE-Sim's missing cycle):
  // attention 18407 + 1533 + 3063 + 6135, MLP 24543 + 18423; of two ranks a half.
  const LayerStudy study{.model = ModelName::gpt2_medium, .ranks = 2};
  const std::vector<Sublayer> block = block_of(study, true);
  ASSERT_EQ(block.size(), 2U);
  EXPECT_EQ(block[0].forward, (29138 + 4) / 2);
  EXPECT_EQ(block[1].forward, (42966 + 2) / 2);
  EXPECT_EQ(block[0].input_gradient, (6135 + 3063 + 1533 + 1533 + 3063 + 18407 + 6) / 2);
  EXPECT_EQ(block[0].weight_gradient, (6135 + 14327 + 2) / 2);
}

TEST(Training, ForwardIsTheSumOfItsParts) {
  // 24 layers in 8 stages of two ranks of a 4 x 4 torus, M = 4 x 256 x 1024 bytes = 1 MiB. A ring
  // of two: AG one step of M/2 = 2048 packets of 7 flits, 109 cycles more; RS a step of M/2, of
  // which 256 bytes are added in a cycle.
  const Training training{.model = ModelName::gpt2_medium, .pair = Pair::tp_sp};
  const flit::Cycle step = 7 * 2048 + 109;
  const flit::Cycle add = 524288 / 256;
  const flit::Cycle compute = (29142 + 42968) / 2;
  const flit::Cycle gather = step;
  const flit::Cycle scatter = step + add;
  const flit::Cycle reduce = scatter + 1 + gather;
  const TrainingRun both = run(training);
  const flit::Cycle base = 24 * (compute + 2 * (gather + reduce));
  const flit::Cycle fused = 24 * (compute + 2 * (gather + scatter));
  // Between stages P2P(M), 4096 packets; a transfer down the torus is one hop, along it two, in
  // which the two ranks' messages meet.
  const flit::Cycle moves = both.base.whole - base;
  EXPECT_EQ(both.fused.whole - fused, moves);
  EXPECT_GE(moves, 7 * (7 * 4096 + 109));
  EXPECT_LE(moves, 7 * (2 * 7 * 4096 + 212));
}

TEST(Training, OneMicrobatchOf1F1BIsForwardThenBackward) {
  Training training{.model = ModelName::deepspeed_moe_350m, .pair = Pair::sp_ep, .stages = 4};
  training.tokens = 32;
  const auto whole = [&](Pass pass) {
    training.pass = pass;
    return run(training).fused.whole;
  };
  EXPECT_EQ(whole(Pass::end_to_end), whole(Pass::forward) + whole(Pass::backward));
  // Of many microbatches each costs at least the slowest stage's time, at most the whole way.
  training.microbatches = 6;
  const flit::Cycle six = whole(Pass::end_to_end);
  training.microbatches = 1;
  const flit::Cycle one = whole(Pass::end_to_end);
  EXPECT_GT(six, one + 5 * one / 8);
  EXPECT_LT(six, 6 * one);
}

TEST(Training, FusedIsNeverSlower) {
  for (const Topology topology :
       {Topology::mesh2d, Topology::torus2d, Topology::torus3d, Topology::two_switch}) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::chunked}) {
      for (const Pair pair : {Pair::tp_sp, Pair::tp_pp}) {
        Training training{.model = ModelName::gpt2_medium, .pair = pair, .topology = topology};
        training.extents = published_extents(topology);
        training.stages = 4;
        training.pass = pass;
        training.tokens = 16;
        const TrainingRun both = run(training);
        EXPECT_LT(both.fused.whole, both.base.whole) << name_of(topology) << name_of(pass);
        EXPECT_LT(both.fused.segment, both.base.segment) << name_of(topology) << name_of(pass);
      }
    }
  }
}

TEST(Training, StagesFindRoomAsPublished) {
  const auto count = [](Topology topology, Extents extents, std::int32_t stages) {
    const std::vector<Block> placed = place_stages(topology, extents, stages);
    const Network network(topology, extents);
    std::set<std::uint32_t> nodes;
    for (const Block& block : placed) {
      for (std::int32_t rank = 0; rank < block.ranks(); ++rank) {
        EXPECT_TRUE(nodes.insert(network.node(block, rank)).second) << "two stages on one node";
      }
    }
    return placed.size();
  };
  EXPECT_EQ(count(Topology::mesh2d, {5, 5, 1}, 12), 12U);  // 10 pairs in rows, 2 in the last column
  EXPECT_EQ(count(Topology::mesh2d, {5, 5, 1}, 6), 6U);    // 4 squares and 2 lines
  EXPECT_EQ(count(Topology::torus3d, {2, 2, 2}, 4), 4U);
  EXPECT_EQ(count(Topology::two_switch, {32, 2, 1}, 4), 4U);
}

}  // namespace
}  // namespace orrery::chimera
