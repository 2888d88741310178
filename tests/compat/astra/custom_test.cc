// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/custom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "compat/astra/msccl.h"
#include "msccl_text.h"

namespace orrery::astra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::msccl_block;
using testing::msccl_gpu;
using testing::msccl_program;
using testing::msccl_ring;
using testing::msccl_step;
using Kind = CustomStep::Kind;

CustomCollective parsed(const std::string& text) {
  auto collective = parse_msccl(text, "test.xml");
  EXPECT_TRUE(collective) << collective.error().to_string();
  return collective ? *collective : CustomCollective{};
}
std::string mistakes(const std::string& text) {
  auto collective = parse_msccl(text, "test.xml");
  EXPECT_FALSE(collective) << text;
  return collective ? "" : collective.error().to_string();
}

std::vector<Kind> kinds(const CustomProgram& program) {
  std::vector<Kind> list;
  for (const CustomStep& step : program.steps) {
    list.push_back(step.kind);
  }
  return list;
}
std::vector<std::uint32_t> needs(const CustomProgram& program, std::size_t step) {
  const auto first = program.dependencies.begin() + program.steps[step].first_dependency;
  return {first, first + program.steps[step].dependencies};
}
/// A second GPU that answers the first one's messages, so that every message has both ends.
std::string with_partner(const std::string& first, const std::string& second, int parts = 8) {
  return msccl_program(2, parts, msccl_gpu(0, first) + msccl_gpu(1, second));
}

TEST(Msccl, ARingIsAChainOfSendsReceivesAndReductions) {
  const CustomCollective ring = parsed(msccl_ring(4));
  EXPECT_EQ(ring.parts, 4);
  EXPECT_TRUE(ring.endpoint_delay);
  EXPECT_EQ(ring.operation, Operation::all_reduce);
  ASSERT_EQ(ring.programs.size(), 4U);
  const CustomProgram& first = ring.programs[0];
  EXPECT_THAT(kinds(first),
              ElementsAre(Kind::send, Kind::receive, Kind::reduce, Kind::send, Kind::receive,
                          Kind::reduce, Kind::send, Kind::receive, Kind::reduce, Kind::send,
                          Kind::receive, Kind::send, Kind::receive, Kind::send, Kind::receive));
  EXPECT_THAT(needs(first, 0), ElementsAre());
  for (std::uint32_t step = 1; step < first.steps.size(); ++step) {
    EXPECT_THAT(needs(first, step), ElementsAre(step - 1));
  }
  EXPECT_EQ(first.steps[0].peer, 1);
  EXPECT_EQ(first.steps[1].peer, 3);
}

TEST(Msccl, SizesScaleWithTheBuffer) {
  // 1 MiB in 4 parts: 262144 bytes; in 8 parts two at once: the same.
  const CustomCollective ring = parsed(msccl_ring(4));
  EXPECT_EQ(size_of(ring.programs[0].steps[0], ring, Bytes(1 << 20)), Bytes(262144));
  const CustomCollective two = parsed(with_partner(msccl_block(0, 1, -1, msccl_step(0, "s", 2)),
                                                   msccl_block(0, -1, 0, msccl_step(0, "r", 2))));
  EXPECT_EQ(size_of(two.programs[0].steps[0], two, Bytes(1 << 20)), Bytes(262144));
}

TEST(Msccl, EveryStepTypeIsItsMessagesAndReductions) {
  const auto of = [](const std::string& type, bool receives, bool sends) {
    std::string partner;
    if (receives) {
      partner += msccl_block(0, 0, -1, msccl_step(0, "s"));
    }
    if (sends) {
      partner += msccl_block(1, -1, 0, msccl_step(0, "r"));
    }
    const auto own = msccl_block(0, sends ? 1 : -1, receives ? 1 : -1, msccl_step(0, type));
    return kinds(parsed(with_partner(own, partner)).programs[0]);
  };
  EXPECT_THAT(of("s", false, true), ElementsAre(Kind::send));
  EXPECT_THAT(of("r", true, false), ElementsAre(Kind::receive));
  EXPECT_THAT(of("rcs", true, true), ElementsAre(Kind::receive, Kind::send));
  EXPECT_THAT(of("rrc", true, false), ElementsAre(Kind::receive, Kind::reduce));
  EXPECT_THAT(of("rrcs", true, true), ElementsAre(Kind::receive, Kind::reduce, Kind::send));
  EXPECT_THAT(of("rrs", true, true), ElementsAre(Kind::receive, Kind::reduce, Kind::send));
  EXPECT_THAT(of("re", false, false), ElementsAre(Kind::reduce));
  EXPECT_THAT(of("cpy", false, false), ElementsAre());
  EXPECT_THAT(of("nop", false, false), ElementsAre());
}

TEST(Msccl, BlocksRunAtOnceAndWaitForEachOtherThroughNops) {
  // Block 0 sends on channel 3 what block 1 (later in the file) received; a nop hands it on.
  const std::string own =
      msccl_block(0, 1, -1, msccl_step(0, "nop", 0, 1, 0) + msccl_step(1, "s"), 3) +
      msccl_block(1, -1, 1, msccl_step(0, "r"), 5);
  const std::string partner =
      msccl_block(0, 0, -1, msccl_step(0, "s"), 5) + msccl_block(1, -1, 0, msccl_step(0, "r"), 3);
  const CustomCollective collective = parsed(with_partner(own, partner));
  const CustomProgram& first = collective.programs[0];
  EXPECT_THAT(kinds(first), ElementsAre(Kind::receive, Kind::send));
  EXPECT_THAT(needs(first, 1), ElementsAre(0U));
  EXPECT_EQ(first.steps[0].tag, 5U);
  EXPECT_EQ(first.steps[1].tag, 3U);
  const CustomProgram& second = collective.programs[1];
  EXPECT_THAT(needs(second, 0), ElementsAre());
  EXPECT_THAT(needs(second, 1), ElementsAre());
}

TEST(Msccl, MistakesNameTheLine) {
  EXPECT_THAT(mistakes("<algo"), HasSubstr("test.xml:1"));
  EXPECT_THAT(mistakes("<other/>"), HasSubstr("no <algo> element"));
  EXPECT_THAT(
      mistakes(with_partner(msccl_block(0, 1, -1, msccl_step(0, "rrcz")), "")),
      ::testing::AllOf(HasSubstr("test.xml:4: step.type: found 'rrcz', expected one of s, r, "),
                       HasSubstr("did you mean 'rrc'?")));
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, -1, -1, msccl_step(0, "s")), "")),
              HasSubstr("expected a block with send=, as this step sends"));
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, 1, -1, msccl_step(0, "nop", 1, 7, 0)), "")),
              HasSubstr("expected a step that block 7 has"));
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, 1, -1, msccl_step(0, "s", 9)), "")),
              HasSubstr("step.cnt: found '9', expected a whole number from 1 to 8"));
  EXPECT_THAT(mistakes(msccl_program(3, 8, msccl_gpu(0, "") + msccl_gpu(0, ""))),
              ::testing::AllOf(HasSubstr("gpu.id: found '0', expected each id once"),
                               HasSubstr("expected the number of gpu elements, which is 1")));
  EXPECT_THAT(mistakes(msccl_program(1, 0, msccl_gpu(0, ""))), HasSubstr("nchunksperloop"));
}

TEST(Msccl, ManyMistakesAreNamedInLinearTime) {
  // Counting the lines before each took 3 10^11 bytes.
  std::string gpus;
  for (int i = 0; i < 200'000; ++i) {
    gpus += "<gpu id=\"0\"/>\n";
  }
  const std::string text = mistakes(msccl_program(1, 8, gpus));
  EXPECT_THAT(text, HasSubstr("test.xml:3: gpu.id: found '0', expected each id once"));
  EXPECT_THAT(text, HasSubstr("more mistakes"));
}

TEST(Msccl, StepsThatWaitForEachOtherAreRefused) {
  const std::string own = msccl_block(0, -1, -1, msccl_step(0, "re", 1, 1, 0)) +
                          msccl_block(1, -1, -1, msccl_step(0, "re", 1, 0, 0));
  EXPECT_THAT(mistakes(with_partner(own, "")), HasSubstr("form no cycle"));
}

TEST(Msccl, EveryMessageNeedsBothEndsOfOneSize) {
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, 1, -1, msccl_step(0, "s")), "")),
              HasSubstr("found 'a message of 1 parts from 0 to 1 with tag 0', expected a receive"));
  EXPECT_THAT(mistakes(with_partner("", msccl_block(0, -1, 0, msccl_step(0, "r")))),
              HasSubstr("expected a send for it"));
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, 1, -1, msccl_step(0, "s", 2)),
                                    msccl_block(0, -1, 0, msccl_step(0, "r", 1)))),
              HasSubstr("a message of 1 parts"));
  EXPECT_THAT(mistakes(with_partner(msccl_block(0, 5, -1, msccl_step(0, "s")), "")),
              HasSubstr("expected another position below 2 as peer"));
}

RC_GTEST_PROP(DependencyOrder, EveryStepComesAfterWhatItNeeds, ()) {
  // Edges from smaller to greater places of a random permutation have no cycle.
  const auto size = *rc::gen::inRange<std::uint32_t>(1, 20);
  std::vector<std::uint32_t> shuffled(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    shuffled[i] = i;
  }
  for (std::uint32_t i = size; i-- > 1;) {
    std::swap(shuffled[i], shuffled[*rc::gen::inRange<std::uint32_t>(0, i + 1)]);
  }
  std::vector<std::vector<std::uint32_t>> needed(size);
  for (std::uint32_t i = 1; i < size; ++i) {
    for (std::uint32_t j = 0; j < i; ++j) {
      if (*rc::gen::inRange(0, 4) == 0) {
        needed[shuffled[i]].push_back(shuffled[j]);
      }
    }
  }
  const auto order = dependency_order(needed);
  RC_ASSERT(order.has_value());
  RC_ASSERT(order->size() == size);
  std::vector<bool> done(size);
  for (const std::uint32_t step : *order) {
    for (const std::uint32_t before : needed[step]) {
      RC_ASSERT(done[before]);
    }
    RC_ASSERT(!done[step]);
    done[step] = true;
  }
}

TEST(DependencyOrder, ACircleHasNone) {
  EXPECT_FALSE(dependency_order({{1}, {0}}));
  EXPECT_FALSE(dependency_order({{0}}));
  EXPECT_TRUE(dependency_order({}));
}

/// Rank 0 sends 100 bytes with tag 2 to rank 1, which works 3 us on them.
chakra::TraceSet two_ranks() {
  using chakra::Node;
  using chakra::NodeType;
  chakra::TraceSet traces;
  traces.programs.resize(2);
  Node send;
  send.id = 4;
  send.type = NodeType::comm_send;
  send.size = Bytes(100);
  send.peer = 1;
  send.tag = 2;
  traces.programs[0].nodes = {send};
  Node work;
  work.id = 1;
  work.type = NodeType::comp;
  work.duration = Time(3'000'000);
  work.dependencies = 1;
  Node receive;
  receive.id = 5;
  receive.type = NodeType::comm_recv;
  receive.size = Bytes(100);
  receive.peer = -1;
  receive.tag = 2;
  receive.first_dependency = 1;
  traces.programs[1].nodes = {work, receive};
  traces.programs[1].dependencies = {1};
  traces.program_of = {0, 1};
  traces.groups.resize(1);
  return traces;
}

TEST(CustomFromTraces, NodesBecomeStepsWithTheSizesOfTheFile) {
  const auto collective = custom_from_traces(two_ranks(), "prefix");
  ASSERT_TRUE(collective) << collective.error().to_string();
  EXPECT_EQ(collective->parts, 0);
  EXPECT_FALSE(collective->endpoint_delay);
  const CustomProgram& first = collective->programs[0];
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_EQ(first.steps[0].peer, 1);
  EXPECT_EQ(first.steps[0].tag, 2U);
  EXPECT_EQ(size_of(first.steps[0], *collective, Bytes(999)), Bytes(100));
  // The work has the smaller id but comes after what it needs.
  const CustomProgram& second = collective->programs[1];
  EXPECT_THAT(kinds(second), ElementsAre(Kind::receive, Kind::compute));
  EXPECT_EQ(second.steps[0].peer, 0);
  EXPECT_EQ(second.steps[1].duration, Time(3'000'000));
  EXPECT_THAT(needs(second, 1), ElementsAre(0U));
}

TEST(CustomFromTraces, WorkTakesAtLeastANanosecond) {
  chakra::TraceSet traces = two_ranks();
  traces.programs[1].nodes[0].duration = Time(0);
  EXPECT_EQ(custom_from_traces(traces, "prefix")->programs[1].steps[1].duration, Time(1'000));
}

TEST(CustomFromTraces, OtherNodesAndLonelyMessagesAreRefused) {
  chakra::TraceSet traces = two_ranks();
  traces.programs[0].nodes[0].type = chakra::NodeType::comm_coll;
  const auto refused = custom_from_traces(traces, "prefix");
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      refused.error().to_string(),
      HasSubstr(
          "prefix, position 0: node 4: found 'type 7', expected COMM_SEND_NODE, COMM_RECV_NODE or "
          "COMP_NODE"));
  traces = two_ranks();
  traces.programs[0].nodes[0].size = Bytes(99);
  const auto lonely = custom_from_traces(traces, "prefix");
  ASSERT_FALSE(lonely);
  EXPECT_THAT(lonely.error().to_string(), HasSubstr("expected a receive for it"));
}

TEST(CustomCollectives, ANodesOwnGoesBeforeTheOperations) {
  CustomCollectives customs;
  customs.all.resize(2);
  customs.by_operation[static_cast<std::size_t>(Operation::all_reduce)] = 0;
  customs.by_node = {{7, 1}};
  EXPECT_EQ(customs.find(Operation::all_reduce, 7), &customs.all[1]);
  EXPECT_EQ(customs.find(Operation::all_reduce, 6), customs.all.data());
  EXPECT_EQ(customs.find(Operation::all_gather, 6), nullptr);
  EXPECT_EQ(customs.find(Operation::all_gather, 7), &customs.all[1]);
}

}  // namespace
}  // namespace orrery::astra
