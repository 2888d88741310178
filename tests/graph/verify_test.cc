// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/workload.h"

namespace orrery {
namespace {

using testing::HasSubstr;

/// Every role issues its templates once each, in order.
class InOrder final : public Source {
 public:
  explicit InOrder(std::int64_t length) : length_(length) {}
  std::optional<Instance> issue(int, std::int64_t index) const override {
    if (index >= length_) {
      return std::nullopt;
    }
    return Instance{.template_index = static_cast<int>(index)};
  }
  std::int64_t length(int) const override { return length_; }

 private:
  std::int64_t length_;
};

Node compute(double flops, std::vector<int> after = {}) {
  Node node;
  node.name = "work";
  node.operators.push_back({.name = "op", .gemm = {}, .flops = Flops(flops), .bytes = 8_B});
  node.after = std::move(after);
  return node;
}

Node message(Node::Kind kind, Channel channel, Bytes bytes = 64_B) {
  Node node;
  node.kind = kind;
  node.stream = kind == Node::Kind::send ? Stream::pp : Stream::receive;
  node.name = "message";
  node.channel = channel;
  node.bytes = bytes;
  return node;
}

Node reduce(Axis axis, Bytes bytes = 64_B) {
  Node node;
  node.kind = Node::Kind::collective;
  node.stream = stream_of(axis);
  node.axis = axis;
  node.name = "reduce";
  node.bytes = bytes;
  return node;
}

/// One template per stage.
Workload pipeline(std::vector<std::vector<Node>> stages) {
  Workload workload;
  workload.layout = {{{Axis::tp, 1}, {Axis::dp, 1}, {Axis::pp, std::ssize(stages)}}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    workload.programs.push_back({"stage " + std::to_string(s), {{"only", std::move(stages[s])}}});
  }
  workload.source = std::make_shared<InOrder>(1);
  return workload;
}

std::string mistakes_of(const Workload& workload) {
  const Result<void> verified = verify(workload);
  return verified ? "" : verified.error().to_string();
}

TEST(Verify, AcceptsMatchingMessagesAndCollectives) {
  EXPECT_EQ(mistakes_of(pipeline(
                {{compute(1), message(Node::Kind::send, Channel::forward),
                  message(Node::Kind::receive, Channel::backward), reduce(Axis::embedding)},
                 {message(Node::Kind::receive, Channel::forward), compute(1, {0}),
                  message(Node::Kind::send, Channel::backward), reduce(Axis::embedding)}})),
            "");
}

TEST(Verify, LastStageSendsForwardToTheFirst) {
  // Interleaved chunks wrap around; each stage sends one and receives one.
  const std::vector<Node> both{message(Node::Kind::receive, Channel::forward),
                               message(Node::Kind::send, Channel::forward)};
  EXPECT_EQ(mistakes_of(pipeline({both, both, both})), "");
}

TEST(Verify, RefusesADependencyThatIsNotEarlier) {
  EXPECT_THAT(mistakes_of(pipeline({{compute(1, {1}), compute(1)}})),
              HasSubstr("stage 0, template 'only', node 0 'work': depends on a node that is not "
                        "earlier"));
  EXPECT_NE(mistakes_of(pipeline({{compute(1, {0})}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute(1, {-1})}})), "");
}

TEST(Verify, RefusesAForeignStream) {
  Node node = reduce(Axis::dp);
  node.stream = Stream::tp;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("stream that is not its own"));
}

TEST(Verify, RefusesASendWithoutReceive) {
  EXPECT_THAT(mistakes_of(pipeline({{message(Node::Kind::send, Channel::backward)}, {compute(1)}})),
              HasSubstr("channel backward: stage 0 sends 1 messages, stage 1 receives 0"));
}

TEST(Verify, RefusesAReceiveOfAnotherSize) {
  EXPECT_THAT(mistakes_of(pipeline({{message(Node::Kind::send, Channel::forward, 64_B)},
                                    {message(Node::Kind::receive, Channel::forward, 32_B)}})),
              HasSubstr("has 64 bytes, its receive 32"));
}

TEST(Verify, RefusesCollectivesThatStagesDoNotShare) {
  EXPECT_THAT(mistakes_of(pipeline({{reduce(Axis::embedding)}, {compute(1)}})),
              HasSubstr("do not issue the same collectives on axis embedding"));
  EXPECT_THAT(mistakes_of(pipeline({{reduce(Axis::pp, 1_B), reduce(Axis::pp, 2_B)},
                                    {reduce(Axis::pp, 2_B), reduce(Axis::pp, 1_B)}})),
              HasSubstr("do not issue the same collectives on axis pp"));
}

TEST(Verify, RefusesTheEmbeddingGroupInAMiddleStage) {
  EXPECT_THAT(
      mistakes_of(pipeline(
          {{reduce(Axis::embedding)}, {reduce(Axis::embedding)}, {reduce(Axis::embedding)}})),
      HasSubstr("stage 1, template 'only', node 0 'reduce': is on axis embedding"));
}

TEST(Verify, RefusesNegativeAndOverflowingSizes) {
  EXPECT_NE(mistakes_of(pipeline({{compute(-1)}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute(std::nan(""))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(Axis::dp, Bytes(-1))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(Axis::dp, Bytes::max())}})), "");
}

TEST(Verify, RefusesTemplateIndicesOutOfRange) {
  Workload workload = pipeline({{compute(1)}});
  workload.source = std::make_shared<InOrder>(2);
  EXPECT_THAT(mistakes_of(workload), HasSubstr("instance 1 has a template index out of range"));
}

TEST(Verify, RefusesProgramsThatDoNotMatchTheLayout) {
  Workload workload = pipeline({{compute(1)}, {compute(1)}});
  workload.layout.axes[2].size = 3;
  EXPECT_THAT(mistakes_of(workload), HasSubstr("2 programs for 3 pipeline stages"));
}

TEST(Statistics, CountEveryInstance) {
  Workload workload = pipeline({{compute(3), compute(4)}});
  workload.programs[0].templates.push_back({"second", {compute(5)}});
  workload.source = std::make_shared<InOrder>(2);
  const WorkloadStatistics total = statistics(workload);
  EXPECT_EQ(total.instances, 2);
  EXPECT_EQ(total.nodes, 3);
  EXPECT_EQ(total.flops, Flops(12));
}

}  // namespace
}  // namespace orrery
