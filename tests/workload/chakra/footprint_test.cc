// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "traces.h"
#include "workload/chakra/tensors.h"

namespace orrery::chakra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void name_tensors(ProtoNode& node, const std::string& field, const std::vector<std::string>& list) {
  auto* strings = attribute(node, field)->mutable_string_list();
  for (const std::string& text : list) {
    strings->add_values(text);
  }
}

/// A chain of three: a(10) and w(5) -> b(20); b, w -> c(30); c -> nothing.
std::vector<ProtoNode> chain() {
  std::vector<ProtoNode> nodes{compute(1), compute(2, {1}), compute(3, {2})};
  name_tensors(nodes[0], "inputs", {"a", "10", "w", "5"});
  name_tensors(nodes[0], "outputs", {"b", "20"});
  name_tensors(nodes[1], "inputs", {"b", "20", "w", "5"});
  name_tensors(nodes[1], "outputs", {"c", "30"});
  name_tensors(nodes[2], "inputs", {"c", "30"});
  return nodes;
}

Program program_of(const std::vector<std::uint64_t>& ids) {
  Program program;
  for (const std::uint64_t id : ids) {
    Node& node = program.nodes.emplace_back();
    node.id = id;
    node.type = NodeType::comp;
  }
  return program;
}

TensorUses tensors_of(const std::vector<ProtoNode>& nodes) {
  const auto tensors = read_tensors(et(nodes), "t.et");
  EXPECT_TRUE(tensors) << tensors.error().to_string();
  return tensors.value_or(TensorUses{});
}

TEST(Tensors, AttributesAreNamesAndSizesByTurns) {
  const TensorUses tensors = tensors_of(chain());
  ASSERT_EQ(tensors.tensors.size(), 4U);
  EXPECT_EQ(tensors.tensors[1].name, "w");
  EXPECT_EQ(tensors.tensors[1].size, Bytes(5));
  ASSERT_EQ(tensors.uses.size(), 7U);
  EXPECT_EQ(tensors.uses[2].node, 1U);
  EXPECT_TRUE(tensors.uses[2].writes);
}

TEST(Tensors, ValuesOfPyTorchAreStoragesThatViewsShare) {
  // Tensor, storage, offset, elements, bytes each: 128 x 4 B, and a view of the last 64 of 256.
  std::vector<ProtoNode> nodes{compute(1), compute(2, {1})};
  nodes[0].mutable_inputs()->set_values(
      "[[7, 3, 0, 128, 4, 'cuda:0'], 1.5, True, '[9, 9, 0, 1, 1, ', [1, 2, 3]]");
  nodes[0].mutable_outputs()->set_values("[[[8, 3, 192, 64, 4, 'cuda:0'], [9, 4, 0, 0, 4, 'x']]]");
  nodes[1].mutable_inputs()->set_values("[[8, 5, 0, 10, 2, \"cuda:0\"]]");
  const TensorUses tensors = tensors_of(nodes);
  ASSERT_EQ(tensors.tensors.size(), 2U);
  EXPECT_EQ(tensors.tensors[0].name, "storage 3");
  EXPECT_EQ(tensors.tensors[0].size, Bytes(1024));
  EXPECT_EQ(tensors.tensors[1].size, Bytes(20));
  EXPECT_EQ(tensors.uses.size(), 3U);
}

TEST(Tensors, WrongListsAreNamed) {
  const auto mistakes = [](const std::vector<std::string>& list) {
    std::vector<ProtoNode> nodes{compute(1)};
    name_tensors(nodes[0], "inputs", list);
    const auto tensors = read_tensors(et(nodes), "t.et");
    return tensors ? std::string() : tensors.error().to_string();
  };
  EXPECT_EQ(mistakes({"a", "0"}), "");
  EXPECT_EQ(mistakes({"a", "2097152.0", "a", "2097152"}), "");  // as STAGE writes them
  EXPECT_THAT(mistakes({"a"}), HasSubstr("t.et: node 1 'n1': inputs: found 'a'"));
  EXPECT_THAT(mistakes({"a", "many"}), HasSubstr("found 'many', expected a size in whole bytes"));
  EXPECT_THAT(mistakes({"a", "-1"}), HasSubstr("a size in whole bytes"));
  EXPECT_THAT(mistakes({"a", "1.5"}), HasSubstr("found '1.5', expected a size in whole bytes"));
  EXPECT_THAT(mistakes({"a", "9223372036854775808"}), HasSubstr("below 2^63"));
  EXPECT_THAT(mistakes({"a", "1", "a", "2"}),
              HasSubstr("found '2', expected 1, as 'a' was before"));
  std::vector<ProtoNode> huge{compute(1)};
  huge[0].mutable_inputs()->set_values("[[1, 1, 0, 9223372036854775807, 8, 'cpu']]");
  EXPECT_FALSE(read_tensors(et(huge), "t.et"));
  EXPECT_FALSE(read_tensors(et(chain()).substr(0, 60), "t.et"));
  // Field 9, outputs, of two bytes: a field that is longer than they are.
  const std::string broken = metadata() + framed(std::string("\x4A\x02\x0A\x7F", 4));
  EXPECT_THAT(read_tensors(broken, "t.et").error().to_string(),
              HasSubstr("ends within its message"));
}

TEST(Footprint, TensorsLiveFromTheirWriteToTheirLastRead) {
  // Nodes from 0, 1, 2 ns. a 0-1, w 0-2, b 0-2, c 1-3: 35 in the first, 55 in the second.
  const Program program = program_of({1, 2, 3});
  const Footprint found =
      footprint(program, tensors_of(chain()), one_after_the_other(program)).value();
  EXPECT_EQ(found.peak, Bytes(55));
  EXPECT_EQ(found.peak_at, 1_ns);
  EXPECT_THAT(found.at_peak, ElementsAre(1, 2, 3));
  EXPECT_TRUE(found.lifetimes[0].initial);
  EXPECT_EQ(found.lifetimes[0].until, 1_ns);
  EXPECT_EQ(found.lifetimes[2].from, 0_ns);
  EXPECT_FALSE(found.lifetimes[2].initial);
  EXPECT_EQ(found.lifetimes[3].from, 1_ns);
  EXPECT_EQ(found.lifetimes[3].until, 3_ns);
}

TEST(Footprint, WhatNobodyReadsStaysToTheEnd) {
  std::vector<ProtoNode> nodes = chain();
  name_tensors(nodes[0], "outputs", {"log", "100"});
  const Program program = program_of({1, 2, 3});
  const Footprint found =
      footprint(program, tensors_of(nodes), one_after_the_other(program)).value();
  EXPECT_EQ(found.peak, Bytes(155));
  EXPECT_TRUE(found.lifetimes[3].result);  // named before c
  EXPECT_EQ(found.lifetimes[3].until, 3_ns);
}

TEST(Footprint, ParametersThatAreUpdatedLiveAllTheTime) {
  // w is read first and written last.
  std::vector<ProtoNode> nodes = chain();
  name_tensors(nodes[2], "outputs", {"w", "5"});
  const Program program = program_of({1, 2, 3});
  const Footprint found =
      footprint(program, tensors_of(nodes), one_after_the_other(program)).value();
  EXPECT_EQ(found.lifetimes[1].from, 0_ns);
  EXPECT_EQ(found.lifetimes[1].until, 3_ns);
}

TEST(Footprint, NodesThatRunTogetherHoldTheirTensorsTogether) {
  // All three from 0 to 1 ns: 10 + 5 + 20 + 30.
  const Program program = program_of({1, 2, 3});
  const std::vector<NodeTime> together(3, {0_ns, 1_ns});
  EXPECT_EQ(footprint(program, tensors_of(chain()), together).value().peak, Bytes(65));
}

TEST(Footprint, AUseByANodeThatIsNotThereIsAMistake) {
  const Program program = program_of({1, 2});
  const auto found = footprint(program, tensors_of(chain()), one_after_the_other(program));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().to_string(), HasSubstr("tensor 'c' is used by node 3"));
}

TEST(Footprint, ATraceWithoutTensorsHasNone) {
  const Program program = program_of({1});
  const Footprint found =
      footprint(program, tensors_of({compute(1)}), one_after_the_other(program)).value();
  EXPECT_EQ(found.peak, Bytes(0));
  EXPECT_THAT(found.at_peak, IsEmpty());
}

RC_GTEST_PROP(Footprint, ThePeakIsTheMostThatLiveInAnyInterval, ()) {
  const auto count = *rc::gen::inRange<std::uint64_t>(1, 12);
  TensorUses tensors;
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < count; ++id) {
    ids.push_back(id);
  }
  for (std::uint32_t t = 0; t < 6; ++t) {
    tensors.tensors.push_back({"", Bytes(*rc::gen::inRange<std::int64_t>(1, 100))});
    for (const std::uint64_t id : ids) {
      if (*rc::gen::arbitrary<bool>()) {
        tensors.uses.push_back({id, t, *rc::gen::arbitrary<bool>()});
      }
    }
  }
  const Program program = program_of(ids);
  const Footprint found = footprint(program, tensors, one_after_the_other(program)).value();
  Bytes most{0};
  for (std::uint64_t i = 0; i < count; ++i) {  // nothing changes inside a nanosecond
    Bytes now{0};
    for (std::uint32_t t = 0; t < 6; ++t) {
      const Time at = 1_ns * static_cast<std::int64_t>(i);
      const TensorLifetime& life = found.lifetimes[t];
      now += life.from <= at && at < life.until ? tensors.tensors[t].size : Bytes(0);
    }
    most = std::max(most, now);
  }
  RC_ASSERT(found.peak == most);
}

}  // namespace
}  // namespace orrery::chakra
