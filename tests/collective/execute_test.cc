// SPDX-License-Identifier: Apache-2.0
/// The closed forms of steps.h against the messages themselves on links.
#include "execute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "collective/steps.h"
#include "machine/topology/link_map.h"
#include "networks.h"
#include "wires.h"

namespace orrery::collective {
namespace {

using testing::dimension_of;
using testing::execute;
using testing::Execution;
using testing::kind_of;
using testing::Wires;
using testing::wires_of;
using Form = Fabric::Form;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr Time kLatency = 3_us;

/// 40 ms at the 100 GB/s of a device: latency hardly counts.
constexpr Bytes kSize{4'000'000'000};

StepCount count_of(Kind kind, Algorithm algorithm, Form form, int ranks) {
  const topology::NetworkDimension dimension = dimension_of(kind_of(form), ranks);
  return count_steps(kind, algorithm, ranks, fabric_of({0, ranks, 1}, dimension))
      .value_or(StepCount{});
}

double closed_form(const StepCount& count, Bytes size) {
  return (count.steps + count.further_hops) * to_seconds(kLatency) +
         count.load * static_cast<double>(size.value()) / 100e9;
}

/// No messages when there is no such schedule.
MessageSchedule messages_of(Kind kind, Algorithm algorithm, int ranks, int chunks = 1) {
  return schedule_of(kind, algorithm, ranks, chunks).value_or(MessageSchedule{});
}

double executed(Kind kind, Algorithm algorithm, Form form, int ranks, Bytes size, int chunks = 1) {
  const MessageSchedule schedule = messages_of(kind, algorithm, ranks, chunks);
  return to_seconds(execute(schedule, size, wires_of(form, ranks, 100_GBps, kLatency)).end);
}

/// Equal but for rounding to picoseconds at each message.
void expect_same(double a, double b, const std::string& what) {
  EXPECT_NEAR(a / b, 1, 1e-6) << what;
}

class EveryGroup : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Execute, EveryGroup, ::testing::Range(2, 34));

TEST(Execute, TwoMessagesOnOneLinkFollowEachOther) {
  // Two of 1 MB over one link of 100 GB/s: 10 and 20 us, each 3 us later.
  MessageSchedule schedule{.kind = Kind::broadcast, .ranks = 3, .messages = {}};
  for (const int receiver : {1, 2}) {
    schedule.messages.push_back({.sender = 0, .receiver = receiver, .blocks = {0}, .after = {}});
  }
  const Execution run =
      execute(schedule, testing::kMegabyte, wires_of(Form::switched, 3, 100_GBps, kLatency));
  EXPECT_EQ(run.arrival[0], 13_us);
  EXPECT_EQ(run.departure[1], 10_us);
  EXPECT_EQ(run.end, 23_us);
}

TEST_P(EveryGroup, OnASwitchTheClosedFormIsTheTimeOfTheMessages) {
  const int ranks = GetParam();
  const std::pair<Kind, Algorithm> exact[] = {{Kind::all_reduce, Algorithm::ring},
                                              {Kind::all_gather, Algorithm::ring},
                                              {Kind::reduce_scatter, Algorithm::ring},
                                              {Kind::all_reduce, Algorithm::direct},
                                              {Kind::all_gather, Algorithm::direct},
                                              {Kind::reduce_scatter, Algorithm::direct},
                                              {Kind::all_to_all, Algorithm::direct},
                                              {Kind::broadcast, Algorithm::direct},
                                              {Kind::all_to_all, Algorithm::pairwise},
                                              {Kind::all_reduce, Algorithm::halving_doubling},
                                              {Kind::all_gather, Algorithm::halving_doubling}};
  for (const auto& [kind, algorithm] : exact) {
    if (!schedule_of(kind, algorithm, ranks)) {
      continue;
    }
    for (const Bytes size : {Bytes(33'264'000), kSize}) {
      expect_same(executed(kind, algorithm, Form::switched, ranks, size),
                  closed_form(count_of(kind, algorithm, Form::switched, ranks), size),
                  std::string(name_of(kind)) + " " + std::string(name_of(algorithm)));
    }
  }
}

TEST_P(EveryGroup, ARingOfHalfTheBufferEachWayIsTheClosedFormOfACycle) {
  // The opposite ring carries the other half over the links of the other direction.
  const int ranks = GetParam();
  const Bytes one_way = ranks == 2 ? kSize : kSize / 2;  // two devices have one link each way
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather}) {
    expect_same(executed(kind, Algorithm::ring, Form::cycle, ranks, one_way),
                closed_form(count_of(kind, Algorithm::ring, Form::cycle, ranks), kSize), "ring");
  }
}

TEST_P(EveryGroup, OneRingOnALineIsItsClosedForm) {
  // The way back of the last member's message uses the links of the other direction.
  const int ranks = GetParam();
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather}) {
    const StepCount count = count_of(kind, Algorithm::ring, Form::line, ranks);
    for (const Bytes size : {Bytes(33), kSize}) {
      EXPECT_LE(executed(kind, Algorithm::ring, Form::line, ranks, size),
                closed_form(count, size) * (1 + 1e-6));
    }
    // With nothing but latency the slowest chunk decides.
    EXPECT_NEAR(executed(kind, Algorithm::ring, Form::line, ranks, Bytes(1)),
                closed_form(count, Bytes(1)), 1e-9);
    // With next to no latency the links do.
    EXPECT_NEAR(executed(kind, Algorithm::ring, Form::line, ranks, kSize),
                closed_form(count, kSize), 2.0 * ranks * ranks * to_seconds(kLatency));
  }
}

TEST_P(EveryGroup, DirectOnAllLinksOfACompleteDimension) {
  const int ranks = GetParam();
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::all_to_all, Kind::broadcast}) {
    expect_same(executed(kind, Algorithm::direct, Form::complete, ranks, kSize),
                closed_form(count_of(kind, Algorithm::direct, Form::complete, ranks), kSize),
                "direct");
  }
  expect_same(
      executed(Kind::all_to_all, Algorithm::pairwise, Form::complete, ranks, kSize),
      closed_form(count_of(Kind::all_to_all, Algorithm::pairwise, Form::complete, ranks), kSize),
      "pairwise");
}

/// Sum over the steps of the time of the busiest link, in units of S / 100 GB/s.
double busiest_links(const MessageSchedule& schedule, const Wires& wires, bool stepwise = true) {
  std::map<std::pair<int, topology::LinkId>, double> load;  // by step and link
  for (const Message& message : schedule.messages) {
    for (const topology::Hop& hop : wires.route(message.sender, message.receiver).hops) {
      load[{stepwise ? message.step : 0, hop.link}] += static_cast<double>(message.blocks.size()) *
                                                       schedule.block_share *
                                                       (100_GBps / hop.bandwidth);
    }
  }
  std::map<int, double> worst;
  for (const auto& [where, share] : load) {
    worst[where.first] = std::max(worst[where.first], share);
  }
  double sum = 0;
  for (const auto& [step, share] : worst) {
    sum += share;
  }
  return sum;
}

TEST_P(EveryGroup, LoadIsThatOfTheBusiestLink) {
  const int ranks = GetParam();
  for (const Form form : {Form::switched, Form::complete, Form::cycle, Form::line}) {
    const Wires wires = wires_of(form, ranks, 100_GBps, kLatency);
    for (const auto& [kind, algorithm] :
         {std::pair{Kind::all_to_all, Algorithm::direct},
          std::pair{Kind::all_reduce, Algorithm::direct},
          std::pair{Kind::all_reduce, Algorithm::halving_doubling}}) {
      const bool folds = algorithm == Algorithm::halving_doubling && (ranks & (ranks - 1)) != 0;
      if (folds) {
        continue;
      }
      const double links = busiest_links(messages_of(kind, algorithm, ranks), wires);
      const double load = count_of(kind, algorithm, form, ranks).load;
      // Partners half way round a cycle both send forwards, others need less: never more.
      const bool exact = form != Form::cycle || algorithm == Algorithm::direct;
      EXPECT_LE(links, load + 1e-9);
      EXPECT_GE(links, exact ? load - 1e-9 : 0);
    }
  }
}

TEST_P(EveryGroup, PairwiseOnALineIsLimitedByItsMiddle) {
  const int ranks = GetParam();
  const MessageSchedule schedule = messages_of(Kind::all_to_all, Algorithm::pairwise, ranks);
  EXPECT_NEAR(busiest_links(schedule, wires_of(Form::line, ranks, 100_GBps, kLatency)),
              count_of(Kind::all_to_all, Algorithm::pairwise, Form::line, ranks).load, 1e-9);
}

TEST_P(EveryGroup, TreePortsCarryWhatTheClosedFormSays) {
  const int ranks = GetParam();
  for (const Kind kind : {Kind::all_reduce, Kind::broadcast}) {
    const MessageSchedule schedule = messages_of(kind, Algorithm::double_binary_tree, ranks);
    for (const Form form : {Form::switched, Form::complete, Form::line}) {
      const double links =
          busiest_links(schedule, wires_of(form, ranks, 100_GBps, kLatency), false);
      const double load = count_of(kind, Algorithm::double_binary_tree, form, ranks).load;
      const bool exact =
          form == Form::switched || (form == Form::complete && kind == Kind::all_reduce);
      EXPECT_LE(links, load + 1e-9);
      EXPECT_GE(links, exact ? load - 1e-9 : 0);
    }
  }
}

TEST_P(EveryGroup, PipelinedTreesApproachTheClosedForm) {
  // 64 chunks a tree: filling and draining the pipeline costs up to two chunks a level and way.
  const int ranks = GetParam();
  for (const Kind kind : {Kind::all_reduce, Kind::broadcast}) {
    const StepCount count = count_of(kind, Algorithm::double_binary_tree, Form::switched, ranks);
    const double bytes_only = count.load * static_cast<double>(kSize.value()) / 100e9;
    const double time =
        executed(kind, Algorithm::double_binary_tree, Form::switched, ranks, kSize, 64);
    EXPECT_GE(time, bytes_only * (1 - 1e-9));
    const double chunk = static_cast<double>(kSize.value()) / (2 * 64) / 100e9;
    EXPECT_LE(time, closed_form(count, kSize) * 1.03 + 2 * count.steps * chunk) << name_of(kind);
  }
}

TEST_P(EveryGroup, APipelinedChainApproachesTheClosedForm) {
  // p-2 chunks of 1/256 fill the pipeline.
  const int ranks = GetParam();
  const StepCount count = count_of(Kind::broadcast, Algorithm::ring, Form::switched, ranks);
  const double fill = (ranks - 2) * static_cast<double>(kSize.value()) / 256 / 100e9;
  EXPECT_NEAR(executed(Kind::broadcast, Algorithm::ring, Form::switched, ranks, kSize, 256),
              closed_form(count, kSize) + fill, 1e-6);
}

RC_GTEST_PROP(ExecuteProperty, MessagesAreNeverFasterThanTheBandwidthBound, ()) {
  // On any links: a member sends, or receives, at least (p-1)/p S; twice that for all_reduce unless
  // partial sums meet on the way, then still S.
  const int ranks = *rc::gen::inRange(2, 34);
  const auto form = *rc::gen::element(Form::switched, Form::complete, Form::cycle, Form::line);
  const auto kind = kNames<Kind>[static_cast<std::size_t>(*rc::gen::inRange(0, 5))].value;
  const auto algorithm = kNames<Algorithm>[static_cast<std::size_t>(*rc::gen::inRange(1, 6))].value;
  const MessageSchedule schedule = messages_of(kind, algorithm, ranks, 4);
  RC_PRE(!schedule.messages.empty());
  const Bytes size(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000));
  const Wires wires = wires_of(form, ranks, 100_GBps, kLatency);
  const double share = kind == Kind::broadcast ? 1 : (ranks - 1.0) / ranks;
  const double factor = kind == Kind::all_reduce ? 2 : 1;
  // An end device of a line has half of the links, and only more time.
  const double bound = factor * share * static_cast<double>(size.value()) / 100e9;
  const Execution run = execute(schedule, size, wires);
  RC_ASSERT(to_seconds(run.end) >= bound);
  // Twice the bandwidth is not slower.
  const Wires faster = wires_of(form, ranks, 200_GBps, kLatency);
  RC_ASSERT(execute(schedule, size, faster).end <= run.end);
}

}  // namespace
}  // namespace orrery::collective
