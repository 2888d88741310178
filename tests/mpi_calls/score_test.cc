// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mpi_calls/learned.h"

namespace orrery::mpi_calls {
namespace {

Record labelled(const std::string& labels) {
  return {"", "", labels, {}};
}

Score score_of(const std::string& truth, const std::string& predicted,
               const ScoreOptions& options) {
  return score_records({labelled(truth)}, {labelled(predicted)}, options).value();
}

const std::string kTruth =
    " (2 1, MPI_Init(0, 0);) (3 1, MPI_Comm_rank(MPI_COMM_WORLD, &rank);)"
    " (7 1, MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);) (9 0, MPI_Wtime();)"
    " (12 1, MPI_Finalize();)";

TEST(Score, OfItselfIsOne) {
  for (const ScoreMode mode : {ScoreMode::strict, ScoreMode::mpirigen}) {
    for (const std::int64_t tolerance : {0, 1, 2}) {
      const Score score = score_of(kTruth, kTruth, {.mode = mode, .tolerance = tolerance});
      EXPECT_EQ(score.location, 1);
      EXPECT_EQ(score.function, 1);
      EXPECT_EQ(score.args, 1);
      EXPECT_EQ(score.precision, 1);
      EXPECT_EQ(score.recall, 1);
      EXPECT_EQ(score.f1, 1);
    }
  }
}

TEST(Score, CountsByHand) {
  // Init is exact; rank is two lines off with one of two arguments; Send is a Recv; Wtime is three
  // lines off; Finalize is missing and there is a Barrier far away. Located 3 of 5; right name 2 of
  // 3; arguments (1 + 1/2) / 2; precision 2/5, recall 2/5.
  const std::string predicted =
      " (2 1, MPI_Init(0, 0);) (5 1, MPI_Comm_rank(MPI_COMM_WORLD, &me);)"
      " (7 1, MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);) (15 0, MPI_Wtime();)"
      " (20 1, MPI_Barrier(MPI_COMM_WORLD);)";
  const Score score = score_of(kTruth, predicted, {});
  EXPECT_DOUBLE_EQ(score.location, 3.0 / 5);
  EXPECT_DOUBLE_EQ(score.function, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.args, 0.75);
  EXPECT_DOUBLE_EQ(score.precision, 2.0 / 5);
  EXPECT_DOUBLE_EQ(score.recall, 2.0 / 5);
  EXPECT_DOUBLE_EQ(score.f1, 2.0 / 5);
  EXPECT_EQ(score.groups[0].name, "sends");
  EXPECT_EQ(score.groups[0].truth, 1);
  EXPECT_EQ(score.groups[0].matched, 0);
  EXPECT_EQ(score.groups[1].predicted, 1);
  // Exactly at their lines: Init, and the Recv in the Send's place.
  EXPECT_DOUBLE_EQ(score_of(kTruth, predicted, {.tolerance = 0}).location, 2.0 / 5);
}

TEST(Score, StrictlyOnePredictionAnswersOneCall) {
  // Three calls around one prediction: mpirigen finds all three (12, 13, 14 are within 1 of 13),
  // strict one.
  const std::string truth = " (12 1, MPI_Send(a);) (13 1, MPI_Send(a);) (14 1, MPI_Send(a);)";
  const std::string predicted = " (13 1, MPI_Send(a);)";
  const ScoreOptions compatible{.mode = ScoreMode::mpirigen, .tolerance = 1};
  EXPECT_DOUBLE_EQ(score_of(truth, predicted, compatible).location, 1);
  EXPECT_DOUBLE_EQ(score_of(truth, predicted, {.tolerance = 1}).location, 1.0 / 3);
}

TEST(Score, KnownWeaknessesStayInTheCompatibleMode) {
  const ScoreOptions exact{.mode = ScoreMode::mpirigen, .tolerance = 0};
  // 11 10 is the decimal 11.10, which is 11 1: one place, of which the last call counts.
  EXPECT_DOUBLE_EQ(score_of(" (11 10, MPI_Send(a);)", " (11 1, MPI_Send(a);)", exact).location, 1);
  const Score twice =
      score_of(" (11 1, MPI_Recv(b);) (11 10, MPI_Send(a);)", " (11 1, MPI_Send(a);)", exact);
  EXPECT_DOUBLE_EQ(twice.location, 1);
  EXPECT_DOUBLE_EQ(twice.function, 1);
  // 11 10 is 10 places behind 11 0 in the same line; with tolerance 2 a prediction answers 11.0 to
  // 11.2 and its neighbours, not 11 5.
  const ScoreOptions near{.mode = ScoreMode::mpirigen, .tolerance = 2};
  EXPECT_DOUBLE_EQ(score_of(" (11 5, MPI_Send(a);)", " (11 1, MPI_Send(a);)", near).location, 0);
  EXPECT_DOUBLE_EQ(score_of(" (11 5, MPI_Send(a);)", " (11 1, MPI_Send(a);)", {}).location, 1);
  // Arguments are cut at every comma, also inside f(a, b); strictly they are two.
  EXPECT_DOUBLE_EQ(score_of(" (1 1, MPI_X(f(a, b), c);)", " (1 1, MPI_X(f(a, d), c);)", exact).args,
                   2.0 / 3);
  EXPECT_DOUBLE_EQ(score_of(" (1 1, MPI_X(f(a, b), c);)", " (1 1, MPI_X(f(a, d), c);)", {}).args,
                   0.5);
  // <|endoftext|> reads as an open bracket.
  EXPECT_DOUBLE_EQ(
      score_of(" (3 1, MPI_Init(0, 0);)", "<|endoftext|>3 1,   MPI_Init(0, 0);)", exact).location,
      1);
  // The common core's share is of all calls: 1 of 2; strictly of the core's: 1 of 1.
  const std::string truth = " (1 1, MPI_Init(0, 0);) (2 1, MPI_Barrier(c);)";
  EXPECT_DOUBLE_EQ(
      score_of(truth, truth, {.mode = ScoreMode::mpirigen, .tolerance = 0, .common_core = true})
          .location,
      0.5);
  EXPECT_DOUBLE_EQ(score_of(truth, truth, {.tolerance = 0, .common_core = true}).location, 1);
}

TEST(Score, LeavesOutProgramsWithMoreCalls) {
  const std::vector<Record> truth{labelled(kTruth), labelled(" (1 1, MPI_Init(0, 0);)")};
  const std::vector<Record> predicted{labelled(""), labelled(" (1 1, MPI_Init(0, 0);)")};
  EXPECT_DOUBLE_EQ(score_records(truth, predicted, {})->location, 0.5);
  const Score few = score_records(truth, predicted, {.calls = 4}).value();
  EXPECT_EQ(few.programs, 1);
  EXPECT_DOUBLE_EQ(few.location, 1);
}

TEST(Score, PairsByNameAndRefusesWhatHasNone) {
  const std::vector<Record> truth{{"a.c", "", " (1 1, MPI_Init(0, 0);)", {}},
                                  {"b.c", "", " (2 1, MPI_Finalize();)", {}}};
  EXPECT_DOUBLE_EQ(score_records(truth, {truth[1], truth[0]}, {})->f1, 1);
  const std::vector<Record> other{{"a.c", "", "", {}}, {"c.c", "", "", {}}};
  EXPECT_THAT(score_records(truth, other, {}).error().to_string(), ::testing::HasSubstr("b.c"));
  EXPECT_FALSE(score_records(truth, {truth[0]}, {}));
}

/// A few calls at random places.
rc::Gen<std::string> any_labels() {
  return rc::gen::map(rc::gen::container<std::vector<std::pair<int, int>>>(
                          rc::gen::pair(rc::gen::inRange(1, 12), rc::gen::inRange(0, 4))),
                      [](const std::vector<std::pair<int, int>>& places) {
                        std::string text;
                        for (const auto& [line, kind] : places) {
                          text += " (" + std::to_string(line) + " 1, MPI_" +
                                  std::string(1, "ABCD"[kind]) + "(x);)";
                        }
                        return text;
                      });
}

RC_GTEST_PROP(Score, LocationNeverFallsWithTheTolerance, ()) {
  const std::string truth = *any_labels();
  const std::string predicted = *any_labels();
  const auto mode = *rc::gen::element(ScoreMode::strict, ScoreMode::mpirigen);
  double before = 0;
  for (const std::int64_t tolerance : {0, 1, 2, 5}) {
    const Score score = score_of(truth, predicted, {.mode = mode, .tolerance = tolerance});
    RC_ASSERT(score.location >= before);
    RC_ASSERT(score.precision <= 1 && score.recall <= 1);
    before = score.location;
  }
}

TEST(Score, SortsFunctionsIntoGroups) {
  for (const auto& [name, group] : {std::pair("MPI_Isend", "sends"),
                                    {"MPI_Sendrecv", "sends"},
                                    {"MPI_Irecv", "receives"},
                                    {"MPI_Iallreduce", "collectives"},
                                    {"MPI_Barrier", "collectives"},
                                    {"MPI_Init", "other"},
                                    {"MPI_Waitall", "other"}}) {
    EXPECT_EQ(group_of(name), group);
  }
}

}  // namespace
}  // namespace orrery::mpi_calls
