// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/statistics.h"

#include <gtest/gtest.h>

namespace orrery::chakra {
namespace {

TEST(Statistics, NodesCountOncePerRankAndMemoryOncePerProgram) {
  // 1,000 ranks of a program of 3 nodes: 3,000 nodes, 3 stored; 4 bytes a rank and the program.
  TraceSet set;
  set.groups.resize(1);
  set.programs.resize(1);
  set.programs[0].nodes.assign(3, Node{});
  set.program_of.assign(1000, 0);
  const Statistics counts = statistics(set);
  EXPECT_EQ(counts.nodes, 3000);
  EXPECT_EQ(counts.stored_nodes, 3);
  EXPECT_EQ(counts.programs, 1);
  EXPECT_EQ(counts.memory, bytes_of(set));
  EXPECT_GE(counts.memory.value(), 4 * 1000 + 3 * static_cast<std::int64_t>(sizeof(Node)));
  EXPECT_LT(counts.memory.value(), 4 * 1000 + 1000);
  EXPECT_DOUBLE_EQ(bytes_per_node(counts), static_cast<double>(counts.memory.value()) / 3000);
  EXPECT_EQ(bytes_per_node({}), 0);
}

TEST(Statistics, AreASentence) {
  EXPECT_EQ(to_string({.memory = Bytes(600), .programs = 2, .stored_nodes = 5, .nodes = 8}),
            "8 nodes as 5 of 2 programs, 75 bytes per node");
}

}  // namespace
}  // namespace orrery::chakra
