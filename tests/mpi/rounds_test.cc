// SPDX-License-Identifier: Apache-2.0
/// Two processes train workers; sums over them are exact (rounds.h), so laws hold bit for bit.
#include "mpi/rounds.h"

#include <gtest/gtest.h>

#include <random>

#include "mpi/two_hop.h"

namespace orrery::mpi {
namespace {

using plan::DataParallelUpdate;

OuterUpdate plain(DataParallelUpdate update, std::int64_t tau, double beta = 0) {
  return {.update = update, .tau = tau, .beta = beta, .penalty = false};
}

TEST(Rounds, OneStepWithoutMomentumIsSynchronousDescentBitForBit) {
  // x0 - mean of (x0 - (x0 - gamma g)) is x0 - mean of gamma g, and gamma (d / gamma) is d.
  const RoundTask task{.workers = 4, .steps = 20};
  const auto together = train_rounds(task, plain(DataParallelUpdate::every_step, 1)).weights;
  for (const auto update : {DataParallelUpdate::local_sgd, DataParallelUpdate::slow_mo,
                            DataParallelUpdate::diloco, DataParallelUpdate::co2}) {
    OuterUpdate one = plain(update, 1);
    one.waited = true;
    EXPECT_EQ(train_rounds(task, one).weights, together) << name_of(update);
  }
  EXPECT_NE(train_rounds(task, plain(DataParallelUpdate::co2, 1)).weights, together);  // it lags
}

TEST(Rounds, ProcessesDoNotChangeABit) {
  const RoundTask task{.workers = 4, .steps = 24};
  const OuterUpdate co2{.update = DataParallelUpdate::co2, .tau = 4, .clip = 1};
  EXPECT_EQ(train_rounds(task, co2).weights, train_rounds(task, co2, MPI_COMM_SELF).weights);
}

TEST(Rounds, ASumIsAppliedExactlyOneRoundLater) {
  // 24 steps of 4: six sums, the last at the end of the run. Each says which round it is of.
  const RoundTask task{.workers = 2, .steps = 24};
  const RoundOutcome delayed = train_rounds(task, plain(DataParallelUpdate::co2, 4));
  EXPECT_EQ(delayed.applied, 6);
  EXPECT_EQ(delayed.least_delay, 1);
  EXPECT_EQ(delayed.most_delay, 1);
  EXPECT_EQ(train_rounds(task, plain(DataParallelUpdate::slow_mo, 4)).most_delay, 0);
}

TEST(Rounds, TheFirstRoundAppliesNothing) {
  // One round alone is local SGD's, as the end of a run applies what is left.
  const RoundTask task{.workers = 2, .steps = 4};
  EXPECT_EQ(train_rounds(task, plain(DataParallelUpdate::co2, 4)).weights,
            train_rounds(task, plain(DataParallelUpdate::local_sgd, 4)).weights);
}

TEST(Rounds, PenaltyAndClipHelpWhereStalenessIsLargeAndCostALittleWhereItIsSmall) {
  // The order of the ablation that the paper's authors and a reference calculation find: outer
  // momentum beats plain averages; the delay costs nothing with few local steps and much with many.
  const RoundTask task{.steps = 480};
  const auto loss = [&](DataParallelUpdate update, std::int64_t tau, bool penalty) {
    OuterUpdate how = plain(update, tau, 0.5);
    how.penalty = penalty;
    return train_rounds(task, how).loss;
  };
  EXPECT_LT(loss(DataParallelUpdate::slow_mo, 48, false),
            loss(DataParallelUpdate::local_sgd, 48, false));
  EXPECT_LT(loss(DataParallelUpdate::co2, 4, false), loss(DataParallelUpdate::co2, 4, true));
  const double penalised = loss(DataParallelUpdate::co2, 48, true);
  EXPECT_GT(loss(DataParallelUpdate::co2, 48, false), penalised);
  OuterUpdate clipped = plain(DataParallelUpdate::co2, 48, 0.5);
  clipped.penalty = true;
  clipped.clip = 0.3;
  EXPECT_LT(train_rounds(task, clipped).loss, penalised);
}

TEST(TwoHop, WhatTravelsIsExactlyTheBytesOfBlocksAndComesBackBitForBit) {
  std::mt19937_64 random(7);
  for (const int bits : {4, 8}) {
    for (const std::size_t elements : {1U, 2U, 7U, 64U, 1001U}) {
      std::vector<float> values(elements);
      for (float& value : values) {
        value = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
      }
      const auto blocks = collective::quantize(values, bits, 16);
      const std::vector<std::byte> wire = to_wire(blocks);
      const auto count = static_cast<std::int64_t>(elements);
      EXPECT_EQ(Bytes(static_cast<std::int64_t>(wire.size())),
                collective::quantized_bytes(count, bits, 16));
      const auto back = from_wire(wire, elements, bits, 16);
      EXPECT_EQ(back.values, blocks.values);
      EXPECT_EQ(back.scales, blocks.scales);
    }
  }
}

}  // namespace
}  // namespace orrery::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int status = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
