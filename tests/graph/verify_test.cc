// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/workload.h"

namespace orrery {
namespace {

using testing::HasSubstr;

// Rows of the tables of pipeline().
constexpr StreamIndex kLink{std::size_t{1}};
constexpr GroupIndex kAlone{std::size_t{0}};
constexpr GroupIndex kStages{std::size_t{1}};
constexpr GroupIndex kEnds{std::size_t{2}};

constexpr std::uint32_t kForward = 0;
constexpr std::uint32_t kBackward = 1;

/// Every role issues its templates once each, in order.
std::shared_ptr<const Source> in_order(std::size_t roles, int length) {
  std::vector<Instance> list;
  for (int i = 0; i < length; ++i) {
    list.push_back({.template_index = i});
  }
  return std::make_shared<InstanceLists>(std::vector<std::vector<Instance>>(roles, list));
}

Node compute(double flops, std::vector<int> after = {}) {
  Node node;
  node.name = "work";
  node.operators.push_back({.name = "op", .gemm = {}, .flops = Flops(flops), .bytes = 8_B});
  node.after = std::move(after);
  return node;
}

Node message(Node::Kind kind, std::uint32_t channel, std::int64_t peer, Bytes bytes = 64_B) {
  Node node;
  node.kind = kind;
  node.stream = kLink;
  node.group = kStages;
  node.name = "message";
  node.channel = channel;
  node.peer = peer;
  node.bytes = bytes;
  return node;
}
Node send(std::uint32_t channel, std::int64_t peer, Bytes bytes = 64_B) {
  return message(Node::Kind::send, channel, peer, bytes);
}
Node receive(std::uint32_t channel, std::int64_t peer, Bytes bytes = 64_B) {
  return message(Node::Kind::receive, channel, peer, bytes);
}

Node reduce(GroupIndex group, Bytes bytes = 64_B) {
  Node node;
  node.kind = Node::Kind::collective;
  node.stream = kLink;
  node.group = group;
  node.name = "reduce";
  node.bytes = bytes;
  return node;
}

Members by_digits(std::vector<Digit> digits, std::vector<std::int64_t> only = {}) {
  return {.digits = std::move(digits), .only = std::move(only), .lists = {}, .list_of = {}};
}

/// One rank and one template per stage.
Workload pipeline(std::vector<std::vector<Node>> stages) {
  const std::int64_t count = std::ssize(stages);
  const bool several = count > 1;
  const auto digits = several ? std::vector<Digit>{{count, 1}} : std::vector<Digit>{};
  const auto ends = several ? std::vector<std::int64_t>{0, count - 1} : std::vector<std::int64_t>{};
  const CategoryIndex exposed(std::size_t{0});
  Workload workload;
  workload.ranks = count;
  workload.role_map.digits = digits;
  workload.phases = {{"work", "all work"}};
  workload.categories = {{"exposed", "all communication"}};
  workload.streams = {{"compute", "kernels"}, {"link", "all communication"}};
  workload.groups = {{"alone", "nobody else", by_digits({}), exposed},
                     {"stages", "all stages", by_digits(digits), exposed},
                     {"ends", "the first and the last", by_digits(digits, ends), exposed}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    workload.roles.push_back({"stage " + std::to_string(s), s});
    workload.programs.push_back({{{"only", std::move(stages[s])}}});
  }
  workload.source = in_order(workload.roles.size(), 1);
  return workload;
}

std::string mistakes_of(const Workload& workload) {
  const Result<void> verified = verify(workload);
  return verified ? "" : verified.error().to_string();
}

TEST(Verify, AcceptsMatchingMessagesAndCollectives) {
  EXPECT_EQ(mistakes_of(pipeline(
                {{compute(1), send(kForward, 1), receive(kBackward, 1), reduce(kEnds)},
                 {receive(kForward, -1), compute(1, {0}), send(kBackward, -1), reduce(kEnds)}})),
            "");
}

TEST(Verify, LastStageSendsForwardToTheFirst) {
  // Interleaved chunks wrap around; each stage sends one and receives one.
  EXPECT_EQ(mistakes_of(pipeline({{receive(kForward, 2), send(kForward, 1)},
                                  {receive(kForward, -1), send(kForward, 1)},
                                  {receive(kForward, -1), send(kForward, -2)}})),
            "");
}

// ---- One node at a time.

TEST(Verify, RefusesADependencyThatIsNotEarlier) {
  EXPECT_THAT(mistakes_of(pipeline({{compute(1, {1}), compute(1)}})),
              HasSubstr("stage 0, template 'only', node 0 'work': depends on a node that is not "
                        "earlier"));
  EXPECT_NE(mistakes_of(pipeline({{compute(1, {0})}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute(1, {-1})}})), "");
}

TEST(Verify, RefusesKernelsBesideTheComputeStreamAndCommunicationOnIt) {
  Node node = reduce(kAlone);
  node.stream = kComputeStream;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("stream that is not its own"));
  node = compute(1);
  node.stream = kLink;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("stream that is not its own"));
  node.kind = Node::Kind::wait;  // stands on any
  node.operators.clear();
  EXPECT_EQ(mistakes_of(pipeline({{node}})), "");
}

TEST(Verify, RefusesRowsThatTheTablesDoNotHave) {
  const auto mistake = [](const auto& change) {
    Node node = reduce(kAlone);
    change(node);
    return mistakes_of(pipeline({{node}}));
  };
  const std::size_t beyond = 3;
  EXPECT_THAT(mistake([&](Node& node) { node.stream = StreamIndex(beyond); }),
              HasSubstr("node 0 'reduce': is on a stream that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.phase = PhaseIndex(beyond); }),
              HasSubstr("is in a phase that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.group = GroupIndex(beyond); }),
              HasSubstr("names a group that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.group = {}; }),
              HasSubstr("names a group that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.sharers = GroupIndex(beyond); }),
              HasSubstr("names sharers that are not there"));
  EXPECT_EQ(mistake([](Node&) {}), "");
}

TEST(Verify, RefusesNegativeAndOverflowingSizes) {
  EXPECT_NE(mistakes_of(pipeline({{compute(-1)}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute(std::nan(""))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(kAlone, Bytes(-1))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(kAlone, Bytes::max())}})), "");
}

TEST(Verify, RefusesKernelsOfCommunication) {
  Node node = reduce(kAlone);
  node.operators = compute(1).operators;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("has operators but computes nothing"));
}

// ---- Messages.

TEST(Verify, RefusesASendWithoutReceive) {
  EXPECT_THAT(mistakes_of(pipeline({{send(kBackward, 1)}, {compute(1)}})),
              HasSubstr("channel 1: stage 0 sends 1 messages, stage 1 receives 0"));
  // Another channel or another peer is another flow.
  EXPECT_NE(mistakes_of(pipeline({{send(kBackward, 1)}, {receive(kForward, -1)}})), "");
}

TEST(Verify, RefusesAReceiveWithoutSend) {
  EXPECT_THAT(mistakes_of(pipeline({{compute(1)}, {receive(kForward, -1)}})),
              HasSubstr("stage 1 receives 1 messages of channel 0 from rank -1, which sends none"));
}

TEST(Verify, RefusesAReceiveOfAnotherSize) {
  EXPECT_THAT(
      mistakes_of(pipeline({{send(kForward, 1, 64_B)}, {receive(kForward, -1, 32_B)}})),
      HasSubstr("channel 0: message 0 from stage 0 to stage 1 has 64 bytes, its receive 32"));
}

TEST(Verify, RefusesMessagesToRanksThatAreNotThere) {
  EXPECT_THAT(mistakes_of(pipeline({{compute(1)}, {send(kForward, 1)}})),
              HasSubstr("stage 1 sends to rank +1, which is not there"));
  EXPECT_THAT(mistakes_of(pipeline({{receive(kForward, -1)}, {compute(1)}})),
              HasSubstr("from rank -1, which sends none"));
  EXPECT_THAT(mistakes_of(pipeline({{send(kForward, 0)}})),
              HasSubstr("is a message to its own rank"));
}

// ---- Collectives.

TEST(Verify, RefusesCollectivesThatStagesDoNotShare) {
  EXPECT_THAT(mistakes_of(pipeline({{reduce(kEnds)}, {compute(1)}})),
              HasSubstr("stage 0 and stage 1 do not issue the same collectives on ends"));
  EXPECT_THAT(mistakes_of(pipeline({{reduce(kStages, 1_B), reduce(kStages, 2_B)},
                                    {reduce(kStages, 2_B), reduce(kStages, 1_B)}})),
              HasSubstr("do not issue the same collectives on stages"));
}

TEST(Verify, RefusesACollectiveOfARankThatIsLeftOut) {
  EXPECT_THAT(
      mistakes_of(pipeline({{reduce(kEnds)}, {reduce(kEnds)}, {reduce(kEnds)}})),
      HasSubstr("stage 1, template 'only', node 0 'reduce': is a collective of ends, which does "
                "not hold rank 1"));
}

TEST(Verify, CollectivesOfOneRoleNeedNoPartner) {
  EXPECT_EQ(mistakes_of(pipeline({{reduce(kAlone)}, {compute(1)}})), "");
}

// ---- Listed roles and communicators.

/// Four ranks in a row; every second one has role 1.
Workload listed(std::vector<Node> even, std::vector<Node> odd) {
  Workload workload = pipeline({std::move(even), std::move(odd)});
  workload.ranks = 4;
  workload.role_map = {.digits = {}, .list = {0, 1, 0, 1}};
  for (Group& group : workload.groups) {
    group.members = {};
  }
  return workload;
}

TEST(Verify, LooksAtTheNeighboursOfEveryRankOfAListedRole) {
  EXPECT_EQ(mistakes_of(listed({send(kForward, 1)}, {receive(kForward, -1)})), "");
  // Rank 0 finds rank 1, rank 2 rank 3; behind rank 3 there is nobody.
  EXPECT_THAT(mistakes_of(listed({receive(kForward, -1)}, {send(kForward, 1)})),
              HasSubstr("stage 1 sends to rank +1, which is not there"));
}

TEST(Verify, ListedCommunicatorsHoldRanksOfAnyRole) {
  const auto with = [](std::vector<std::vector<std::int64_t>> lists) {
    Workload workload = listed({reduce(kStages, 1_B)}, {reduce(kStages, 2_B)});
    workload.groups[*kStages].members = Members::listed(std::move(lists), 4);
    return mistakes_of(workload);
  };
  EXPECT_EQ(with({{0, 2}, {3, 1}}), "");
  EXPECT_THAT(with({{0, 2}, {3}}), HasSubstr("which does not hold rank 1"));
  EXPECT_THAT(with({{0, 1}, {2, 3}}),
              HasSubstr("stage 0 and stage 1 do not issue the same collectives on stages"));
}

// ---- Tables and sources.

TEST(Verify, RefusesTemplateIndicesOutOfRange) {
  Workload workload = pipeline({{compute(1)}});
  workload.source = in_order(1, 2);
  EXPECT_THAT(mistakes_of(workload), HasSubstr("instance 1 has a template index out of range"));
}

TEST(Verify, RefusesRolesThatDoNotMatchTheRanks) {
  Workload workload = pipeline({{compute(1)}, {compute(1)}});
  workload.role_map.digits = {{3, 1}};
  EXPECT_THAT(mistakes_of(workload), HasSubstr("2 roles, but the ranks have 3"));
  workload.role_map = {.digits = {}, .list = {0}};  // of two ranks
  EXPECT_THAT(mistakes_of(workload), HasSubstr("2 roles, but the ranks have 1"));
}

TEST(Verify, RefusesTablesThatDoNotFit) {
  const auto mistake = [](const auto& change) {
    Workload workload = pipeline({{compute(1)}, {compute(1)}});
    change(workload);
    return mistakes_of(workload);
  };
  EXPECT_THAT(mistake([](Workload& workload) { workload.roles[1].program = 2; }),
              HasSubstr("stage 1: has no program"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.phases.clear(); }),
              HasSubstr("no phases or no streams"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.streams.clear(); }),
              HasSubstr("no phases or no streams"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.groups[0].category = {}; }),
              HasSubstr("group alone: counts as a category that is not there"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.source = nullptr; }),
              HasSubstr("the workload has no source"));
}

/// A stream of work that nobody knows beforehand.
class Surprise final : public Source {
 public:
  std::unique_ptr<Source> restart() const override { return std::make_unique<Surprise>(); }
  Next next(int, std::int64_t, Time) override { return Next::done(); }
};

TEST(Verify, LooksAtNodesOnlyWhereTheSourceIsNoList) {
  Workload workload = pipeline({{send(kForward, 1)}, {compute(1)}});
  workload.source = std::make_shared<Surprise>();
  EXPECT_EQ(mistakes_of(workload), "");
  workload.programs[0].templates[0].nodes.push_back(compute(1, {5}));
  EXPECT_NE(mistakes_of(workload), "");
}

/// Microbatch after microbatch of template 0; the one before the last may be another template.
class Steady final : public IssueList {
 public:
  Steady(std::int64_t length, bool odd) : length_(length), odd_(odd) {}
  std::unique_ptr<Source> restart() const override { return std::make_unique<Steady>(*this); }
  Instance at(int role, std::int64_t index) const override {
    const bool other = odd_ && role == 1 && index == length_ - 2;
    return {.template_index = other ? 1 : 0, .chunk = 0, .microbatch = index};
  }
  std::int64_t length(int) const override { return length_; }
  std::optional<Period> period(int) const override {
    return Period{.first = 0, .end = length_ - 2, .length = 1, .microbatches = 1};
  }

 private:
  std::int64_t length_;
  bool odd_;
};

TEST(Verify, FindsMistakesBehindTheSteadyPart) {
  Workload workload = pipeline({{send(kForward, 1)}, {receive(kForward, -1)}});
  workload.programs[1].templates.push_back({"other", {receive(kForward, -1, 32_B)}});
  workload.source = std::make_shared<Steady>(1'000'000'000, false);
  EXPECT_EQ(mistakes_of(workload), "");
  workload.source = std::make_shared<Steady>(1'000'000'000, true);
  EXPECT_THAT(mistakes_of(workload), HasSubstr("has 64 bytes, its receive 32"));
}

// ---- Statistics.

TEST(Statistics, CountEveryInstance) {
  Workload workload = pipeline({{compute(3), compute(4)}});
  workload.programs[0].templates.push_back({"second", {compute(5)}});
  workload.source = in_order(1, 2);
  const WorkloadStatistics total = statistics(workload);
  EXPECT_EQ(total.instances, 2);
  EXPECT_EQ(total.nodes, 3);
  EXPECT_EQ(total.flops, Flops(12));
}

TEST(Statistics, CountEveryRoleOfASharedProgram) {
  // Two roles of 10^6 instances of two nodes, 7 FLOP.
  Workload workload = pipeline({{compute(3), compute(4)}, {}});
  workload.roles[1].program = 0;
  workload.source = std::make_shared<Steady>(1'000'000, false);
  const WorkloadStatistics total = statistics(workload);
  EXPECT_EQ(total.instances, 2'000'000);
  EXPECT_EQ(total.nodes, 4'000'000);
  EXPECT_EQ(total.flops, Flops(14e6));
}

}  // namespace
}  // namespace orrery
