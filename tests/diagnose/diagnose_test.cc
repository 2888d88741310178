// SPDX-License-Identifier: Apache-2.0
// Every syndrome injected gives that verdict and no other.
#include "diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "recorded.h"

namespace orrery::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Job;
using testing::messages_of;

using Slower = std::function<double(std::int64_t, std::int64_t)>;

/// The share of `trials` jobs of which exactly `wanted` is found; without, nothing.
double rate(std::int64_t ranks, int trials, const Slower& slower,
            std::optional<std::pair<Syndrome, std::vector<std::int64_t>>> wanted) {
  int exact = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Diagnosis found =
        diagnose(messages_of(ranks, static_cast<std::uint64_t>(trial) + 1, slower), {});
    exact += wanted ? found.findings.size() == 1 && found.findings[0].syndrome == wanted->first &&
                          found.findings[0].ranks == wanted->second
                    : found.findings.empty();
  }
  return static_cast<double>(exact) / trials;
}
Slower sends(double times) {
  return [=](std::int64_t source, std::int64_t) { return source == 5 ? times : 1; };
}
Slower receives(double times) {
  return [=](std::int64_t, std::int64_t target) { return target == 5 ? times : 1; };
}
Slower link(double times) {
  return [=](std::int64_t source, std::int64_t target) {
    return source == 5 && target == 2 ? times : 1;
  };
}

// Rates of exact diagnosis of a reference calculation with these thresholds (40 trials a cell; of a
// healthy job 80), C4D's matrix of 20 samples with 15 % of log-normal noise. 40 trials of a rate of
// 0.2 have a standard deviation of 0.06.
TEST(SlowMessages, AreFoundAsOftenAsInTheReferenceCalculation) {
  constexpr int kTrials = 40;
  constexpr int kFew = 10;  // of 32 ranks, where every trial is right
  constexpr double kOfLuck = 0.2;
  EXPECT_EQ(rate(8, 2 * kTrials, sends(1), {}), 1.0);
  EXPECT_EQ(rate(32, kFew, sends(1), {}), 1.0);
  const std::pair sender(Syndrome::slow_sender, std::vector<std::int64_t>{5});
  const std::pair receiver(Syndrome::slow_receiver, std::vector<std::int64_t>{5});
  EXPECT_NEAR(rate(8, kTrials, sends(1.1), sender), 0.17, kOfLuck);
  EXPECT_NEAR(rate(8, kTrials, receives(1.1), receiver), 0.12, kOfLuck);
  EXPECT_EQ(rate(32, kFew, sends(1.1), sender), 1.0);
  EXPECT_EQ(rate(32, kFew, receives(1.1), receiver), 1.0);
  EXPECT_GE(rate(8, kTrials, sends(1.2), sender), 0.97);
  EXPECT_GE(rate(8, kTrials, receives(1.2), receiver), 0.97);
  EXPECT_EQ(rate(32, kFew, sends(1.2), sender), 1.0);
  const std::pair one(Syndrome::slow_link, std::vector<std::int64_t>{5, 2});
  EXPECT_LE(rate(8, kTrials, link(1.1), one), 0.05);
  EXPECT_NEAR(rate(8, kTrials, link(1.2), one), 0.17, kOfLuck);
  EXPECT_NEAR(rate(8, kTrials, link(1.3), one), 0.78, kOfLuck);
  EXPECT_GE(rate(8, kTrials, link(1.5), one), 0.97);
  EXPECT_NEAR(rate(32, kTrials, link(1.3), one), 0.88, kOfLuck);
  EXPECT_EQ(rate(32, kFew, link(1.5), one), 1.0);
}

TEST(SlowMessages, ARankThatSendsAndReceivesSlowlyIsOneFinding) {
  const auto found = diagnose(messages_of(16, 3,
                                          [](std::int64_t source, std::int64_t target) {
                                            return source == 5 || target == 5 ? 2.0 : 1.0;
                                          }),
                              {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::slow_rank);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(5));
  EXPECT_NEAR(found.findings[0].slowdown, 2, 0.1);
  EXPECT_GT(found.findings[0].sigmas.value(), 6);
}

TEST(SlowMessages, OnlyLikeIsComparedWithLike) {
  Telemetry telemetry = messages_of(8, 3, sends(1));
  telemetry.paths = {"same leaf", "over the spine"};
  for (Message& message : telemetry.messages) {
    if (message.source / 4 != message.target / 4) {
      message.path = 1;
      message.duration = 3 * message.duration;
    }
    if (message.target == 7) {  // small messages: latency
      message.bytes = Bytes(1000);
    }
  }
  EXPECT_TRUE(diagnose(telemetry, {}).findings.empty());
}

Telemetry recorded(const testing::Recorded& microseconds) {
  Telemetry telemetry;
  telemetry.paths = {""};
  std::size_t pair = 0;
  for (std::int64_t source = 0; source < 4; ++source) {
    for (std::int64_t target = 0; target < 4; ++target) {
      for (std::size_t i = 0; source != target && i < 20; ++i) {
        telemetry.messages.push_back({source, target, Bytes(65536),
                                      static_cast<std::int64_t>(microseconds[pair][i]) * 1_us, 0});
      }
      pair += source != target ? 1 : 0;
    }
  }
  return telemetry;
}

// Cells of the clean matrix differ by up to 1.56, which the spread of their messages accounts for;
// their distances from each other alone (MAD 2 %) do not. Beside the late link rank 1 sends to two
// others, whose slower would be the median of what it sends.
TEST(SlowMessages, OfABusyHostAreToldFromItsNoise) {
  EXPECT_TRUE(diagnose(recorded(testing::kClean), {}).findings.empty());
  const Diagnosis late = diagnose(recorded(testing::kLate), {});
  ASSERT_EQ(late.findings.size(), 2u);
  EXPECT_THAT(late.findings[0].ranks, ElementsAre(1, 2));
  EXPECT_THAT(late.findings[1].ranks, ElementsAre(2, 1));
  EXPECT_EQ(late.findings[0].syndrome, Syndrome::slow_link);
  EXPECT_EQ(late.findings[1].syndrome, Syndrome::slow_link);
}

// Messages of 80 us, of one pair 20 us more: a slow link, unless those who look for messages look
// every 50 us; 400 us more are slow in any case.
TEST(SlowMessages, CloserThanTheirResolutionAreAlike) {
  const auto findings = [](Time more, Time resolution) {
    Telemetry telemetry = messages_of(8, 3, sends(1));
    for (Message& message : telemetry.messages) {
      message.duration = 80_us;
      message.resolution = resolution;
      if (message.source == 5 && message.target == 2) {
        message.duration += more;
      }
    }
    return diagnose(telemetry, {}).findings.size();
  };
  EXPECT_EQ(findings(20_us, Time(0)), 1u);
  EXPECT_EQ(findings(20_us, 50_us), 0u);
  EXPECT_EQ(findings(400_us, 50_us), 1u);
}

// A ring fills one cell of every row and column.
TEST(SlowMessages, OfARingDoNotTellTheLinkFromItsEnds) {
  Telemetry telemetry;
  telemetry.paths = {""};
  for (std::int64_t sample = 0; sample < 20; ++sample) {
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      telemetry.messages.push_back(
          {rank, (rank + 1) % 8, Bytes(1000), Time(rank == 3 ? 2'000'000 : 1'000'000 + sample), 0});
    }
  }
  const Diagnosis found = diagnose(telemetry, {});
  EXPECT_TRUE(found.findings.empty());
  ASSERT_EQ(found.undecided.size(), 1u);
  EXPECT_THAT(found.undecided[0], HasSubstr("messages from 3 to 4 take 2.00 times as long"));
  EXPECT_THAT(found.undecided[0], HasSubstr("to tell the link from its ends"));
}

/// 2 x 4 ranks: tensor parallel in rows {0..3}, {4..7}, data parallel in columns {r, r + 4}.
std::vector<Communicator> two_by_four() {
  return {{"tp0", {0, 1, 2, 3}}, {"tp1", {4, 5, 6, 7}}, {"dp0", {0, 4}},
          {"dp1", {1, 5}},       {"dp2", {2, 6}},       {"dp3", {3, 7}}};
}
/// Steps of 10 ms with three collectives of tp, then one of dp; `late`: what a rank takes besides.
Job training(int steps, const std::function<Time(std::int64_t rank, int step)>& late) {
  Job job(two_by_four());
  for (int step = 0; step < steps; ++step) {
    for (int layer = 0; layer < 3; ++layer) {
      for (std::int64_t rank = 0; rank < 8; ++rank) {
        job.compute(rank, 3_ms + (layer == 0 ? late(rank, step) : Time(0)));
      }
      job.meet(0, 3 * step + layer);
      job.meet(1, 3 * step + layer);
    }
    for (std::size_t dp = 2; dp < 6; ++dp) {
      job.meet(dp, step);
    }
  }
  return job;
}

TEST(Stragglers, AHealthyJobHasNone) {
  const Diagnosis found =
      diagnose(training(20, [](auto, auto) { return Time(0); }).telemetry(), {});
  EXPECT_TRUE(found.findings.empty());
  EXPECT_TRUE(found.undecided.empty());
  EXPECT_EQ(found.ranks, 8);
}

// Rank 6 makes its tensor-parallel neighbours late, who are late for their data-parallel peers:
// only rank 6 is to be blamed. Nobody's clock is right.
TEST(Stragglers, BlameIsPassedOnToWhoeverWaitsForNobody) {
  for (const int every : {1, 4}) {  // always, and at every fourth step
    Job job = training(40, [&](std::int64_t rank, int step) {
      return rank == 6 && step % every == 0 ? 2_ms * every : Time(0);
    });
    job.skew_clocks();
    const Diagnosis found = diagnose(job.telemetry(), {});
    ASSERT_EQ(found.findings.size(), 1u) << every;
    EXPECT_EQ(found.findings[0].syndrome, Syndrome::straggler);
    EXPECT_THAT(found.findings[0].ranks, ElementsAre(6));
    EXPECT_EQ(found.findings[0].communicator, "tp1");
    EXPECT_EQ(found.findings[0].lost, 80_ms) << "40 times 2 ms";
  }
}

TEST(Stragglers, RanksThatTakeTurnsAreNobodysFault) {
  const Diagnosis found = diagnose(
      training(40, [](std::int64_t rank, int step) { return rank == step % 8 ? 3_ms : Time(0); })
          .telemetry(),
      {});
  EXPECT_TRUE(found.findings.empty());
  EXPECT_THAT(found.undecided, ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(found.undecided[0], HasSubstr("take turns"));
}

TEST(Stragglers, APartInAThousandIsNoise) {
  EXPECT_TRUE(
      diagnose(training(20, [](std::int64_t rank, auto) { return rank == 6 ? 10_us : 0_us; })
                   .telemetry(),
               {})
          .findings.empty());
}

/// Four ranks that share a busy host: 40 steps of 10 ms, in a third of which a rank loses its core
/// for 20 ms on average; `factor` is how long rank 2 computes.
Diagnosis on_a_busy_host(std::uint64_t seed, double factor) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  Job job({{"dp", {0, 1, 2, 3}}});
  job.say_computed();
  for (int step = 0; step < 40; ++step) {
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const double noise = std::exp(0.02 * testing::normal(random));
      job.compute(rank, from_seconds(0.01 * noise * (rank == 2 ? factor : 1)));
      job.lose(rank, from_seconds(uniform() < 1.0 / 3 ? -0.02 * std::log(uniform()) : 0));
    }
    job.meet(0, step);
  }
  return diagnose(job.telemetry(), {});
}

// Nobody enters last because of its own work; rank 2, three times as slow, does.
TEST(Stragglers, OfABusyHostAreThoseThatComputeLonger) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Diagnosis clean = on_a_busy_host(seed, 1);
    EXPECT_TRUE(clean.findings.empty()) << seed;
    ASSERT_EQ(clean.undecided.size(), 1u);
    EXPECT_THAT(clean.undecided[0], HasSubstr("their hosts or their inputs are late"));
    const Diagnosis slow = on_a_busy_host(seed, 3);
    ASSERT_EQ(slow.findings.size(), 1u) << seed;
    EXPECT_EQ(slow.findings[0].syndrome, Syndrome::straggler);
    EXPECT_THAT(slow.findings[0].ranks, ElementsAre(2));
  }
}

// Two threads of a core share it: each may take up to twice as long.
TEST(Stragglers, ARankWhoseCoreIsSharedIsNotBlamed) {
  const Diagnosis found = on_a_busy_host(1, 1.8);
  EXPECT_TRUE(found.findings.empty());
  ASSERT_EQ(found.undecided.size(), 1u);
  EXPECT_THAT(found.undecided[0], HasSubstr("rank 2 computes 1."));
  EXPECT_THAT(found.undecided[0], HasSubstr("another program on its core"));
}

// A rank is late in the first quarter of the steps, for long: who passes by is not at fault.
TEST(Stragglers, WhatHoldsForAWhileIsNotBlamed) {
  const auto late = [](int until) {
    return training(40, [=](std::int64_t rank,
                            int step) { return rank == 6 && step < until ? 20_ms : Time(0); })
        .telemetry();
  };
  EXPECT_TRUE(diagnose(late(10), {}).findings.empty());
  EXPECT_EQ(diagnose(late(40), {}).findings.size(), 1u);
}

// Rank 6 never enters collective 1 of tp1; ranks 0 to 3 go on until dp2 waits for it too.
TEST(Hangs, WhoeverHasNotEnteredIsMissing) {
  Job job(two_by_four());
  job.meet(0, 0);
  job.meet(1, 0);
  for (const std::int64_t rank : {4, 5, 7}) {
    job.enter(1, 1, rank);
  }
  job.meet(0, 1);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    job.enter(static_cast<std::size_t>(2 + rank), 0, rank);
  }
  job.record_until(60_s);
  job.skew_clocks();
  const Diagnosis found = diagnose(job.telemetry(), {});
  ASSERT_FALSE(found.findings.empty());
  for (const Finding& finding : found.findings) {  // tp1, and dp2 in which it is missing too
    EXPECT_EQ(finding.syndrome, Syndrome::missing_rank);
    EXPECT_THAT(finding.ranks, ElementsAre(6));
  }
  EXPECT_EQ(found.findings.size(), 2u);
  EXPECT_EQ(found.findings[0].communicator, "tp1");
  EXPECT_EQ(found.findings[0].sequence, 1);
  EXPECT_THAT(found.findings[0].because, HasSubstr("3 ranks wait in all_reduce 1 of tp1"));

  EXPECT_TRUE(diagnose(job.telemetry(), {.timeout = 120_s}).findings.empty()) << "not yet";
}

// Rank 2 of four is 20 ms late in 10 collectives, and rank 0 is missing in the next.
TEST(Hangs, AJobThatHangsIsNotAskedForStragglers) {
  Job job({{"world", {0, 1, 2, 3}}});
  for (int step = 0; step < 10; ++step) {
    job.compute(2, 20_ms);
    job.meet(0, step);
  }
  const Diagnosis before = diagnose(job.telemetry(), {});
  ASSERT_EQ(before.findings.size(), 1u);
  EXPECT_EQ(before.findings[0].syndrome, Syndrome::straggler);
  for (const std::int64_t rank : {1, 2, 3}) {
    job.enter(0, 10, rank);
  }
  job.record_until(60_s);
  const Diagnosis found = diagnose(job.telemetry(), {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::missing_rank);
}

TEST(Hangs, WhenAllHaveEnteredTheOneThatHasSentLeastIsBlamed) {
  Job job({{"world", {0, 1, 2, 3}}});
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    job.enter(0, 7, rank).sent = rank == 2 ? 3 : 5;
  }
  job.record_until(60_s);
  const Diagnosis found = diagnose(job.telemetry(), {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::communication_hang);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(2));
  EXPECT_EQ(found.findings[0].lost, 60_s);

  Job uncounted({{"world", {0, 1, 2, 3}}});
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    uncounted.enter(0, 7, rank);
  }
  uncounted.record_until(60_s);
  const Diagnosis nobody = diagnose(uncounted.telemetry(), {});
  EXPECT_TRUE(nobody.findings.empty());
  ASSERT_EQ(nobody.undecided.size(), 1u);
  EXPECT_THAT(nobody.undecided[0], HasSubstr("nobody can be blamed"));
}

// Rank 0 calls a then b, rank 1 b then a.
TEST(Hangs, RanksThatCallInDifferentOrdersWaitForEachOther) {
  Job job({{"a", {0, 1}}, {"b", {0, 1}}});
  job.enter(0, 0, 0);
  job.enter(1, 0, 1);
  job.record_until(60_s);
  const Diagnosis found = diagnose(job.telemetry(), {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::wrong_order);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(0, 1));
}

TEST(Hangs, CallsThatDifferAreAMismatchAndNothingElse) {
  Job job({{"world", {0, 1, 2, 3}}});
  job.meet(0, 0);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    job.enter(0, 1, rank).bytes = Bytes(rank == 1 ? 512 : 1024);
  }
  job.record_until(60_s);
  const Diagnosis found = diagnose(job.telemetry(), {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::mismatch);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(1));
  EXPECT_EQ(found.findings[0].sequence, 1);
}

}  // namespace
}  // namespace orrery::diagnose
