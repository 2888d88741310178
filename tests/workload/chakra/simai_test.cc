// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces.h"

namespace orrery::chakra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<TraceSet> load_text(const std::string& text, std::int64_t ranks) {
  const Folder folder;
  folder.write("w.txt", text);
  return load({.prefix = folder / "w.txt", .ranks = ranks, .groups = {}, .progress = {}});
}

const std::string kHeader =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 "
    "all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n";

/// Two layers: forward a, b; backward b, a. b sends its weight gradient beside a's backward.
TEST(Simai, LayersGoForwardAndBack) {
  const auto set =
      load_text(kHeader +
                    "2\n"
                    "a -1 2000 ALLREDUCE 64 3000 NONE 0 1 NONE 0 100\n"
                    "b\t-1\t1600\tNONE\t0\t1600\tNONE\t0\t4000\tALLGATHER\t400\t5000\n",
                8);
  ASSERT_TRUE(set) << set.error().to_string();
  const Program& program = set->program(0);
  std::vector<std::string> nodes;
  for (const Node& node : program.nodes) {
    std::string text = std::string(program.name_of(node)) + ":";
    text += node.type == NodeType::comp ? std::to_string(node.duration.value() / 1'000'000)
                                        : "x" + std::to_string(node.size.value());
    for (std::uint32_t i = 0; i < node.dependencies; ++i) {
      text += " <" + std::to_string(program.dependencies[node.first_dependency + i]);
    }
    nodes.push_back(text);
  }
  // Times in us: 1.6 is 1 and carries 0.6, so the next 1.6 are 2 and carry 0.2; an all-gather over
  // dp 4 puts in a quarter; what a's weight gradient takes, 1 ns, is carried.
  EXPECT_THAT(nodes, ElementsAre("a:2", "a:x64 <0", "b:1 <1", "b:2 <2", "b:4 <3", "b:x100 <4",
                                 "b:5 <5", "a:3 <4"));
}

/// Rank 5 of tp 2, ep 2, dp 4 is tp 1 of replica 2.
TEST(Simai, CollectivesRunOverTheGroupsOfARank) {
  const auto set = load_text(kHeader +
                                 "1\n"
                                 "l -1 0 ALLREDUCE 8 0 ALLTOALL_EP 8 0 REDUCESCATTER_DP_EP 8 0\n",
                             8);
  ASSERT_TRUE(set) << set.error().to_string();
  const auto groups_of = [&](std::size_t rank) {
    std::vector<std::vector<std::int64_t>> groups;
    for (std::size_t slot = 0; slot < 3; ++slot) {
      groups.push_back(set->groups[set->group_slots[set->first_slot[rank] + slot]].ranks);
    }
    return groups;
  };
  EXPECT_THAT(groups_of(5), ElementsAre(ElementsAre(4, 5), ElementsAre(5, 7), ElementsAre(1, 5)));
  EXPECT_THAT(groups_of(0), ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(0, 4)));
}

TEST(Simai, MistakesNameTheirLine) {
  const auto wrong = [](const std::string& text, std::int64_t ranks) {
    return load_text(text, ranks).error().to_string();
  };
  EXPECT_THAT(wrong(kHeader + "1\nl -1 0 ALLREDUCE_X 8 0 NONE 0 0 NONE 0 0\n", 8),
              HasSubstr("line 3: collective: found 'ALLREDUCE_X'"));
  EXPECT_THAT(wrong(kHeader + "1\nl -1 0 NONE 0\n", 8),
              HasSubstr("line 3: layer: found '5 columns'"));
  EXPECT_THAT(wrong(kHeader + "2\nl -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n", 8),
              HasSubstr("layers: found '1', expected as many lines as the second says, 2"));
  EXPECT_THAT(wrong(kHeader + "0\n", 4),
              HasSubstr("all_gpus: found '8', expected the number of ranks, 4"));
  EXPECT_THAT(wrong("DATA\n0\n", 8), HasSubstr("line 1: policy: found 'DATA'"));
  EXPECT_THAT(wrong("HYBRID_TRANSFORMER ep:\n0\n", 8), HasSubstr("line 1: ep: a whole number"));
  EXPECT_NE(wrong("", 8), "");
  const auto header = [&](const std::string& more) {
    return wrong("HYBRID_TRANSFORMER " + more + "\n1\nl -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n", 8);
  };
  EXPECT_THAT(header("eep: 2"), HasSubstr("line 1: header: found 'eep:', expected a name such as "
                                          "ep: or a number (did you mean 'ep:'?)"));
  EXPECT_TRUE(load_text("HYBRID_TRANSFORMER checkpoints: 0 pp_comm 4096\n0\n", 8).has_value());
  EXPECT_THAT(header("mode: 1"), HasSubstr("found 'mode:'"));  // of forward passes alone
  EXPECT_THAT(header("ep 2"), HasSubstr("found 'ep'"));
  EXPECT_THAT(header("ep: 2 ep: 4"), HasSubstr("found 'ep:', expected every name once"));
  EXPECT_THAT(header("pp: 1 ep:"), HasSubstr("line 1: ep: a whole number"));
  EXPECT_THAT(wrong(kHeader, 8), HasSubstr("found 'no line', expected the number of layers"));
  EXPECT_THAT(wrong(kHeader + "-1\nl\n", 8), testing::Not(HasSubstr("as many lines")));
}

}  // namespace
}  // namespace orrery::chakra
