// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "traces.h"
#include "workload/chakra/byte_window.h"
#include "workload/chakra/statistics.h"

namespace orrery::chakra {
namespace {

using testing::HasSubstr;

Result<TraceSet> load_ranks(const std::string& prefix, std::int64_t ranks,
                            const std::optional<std::string>& groups = {}) {
  return load({.prefix = prefix, .ranks = ranks, .groups = groups, .progress = {}});
}

TEST(Load, ranks_with_equal_files_share_a_program) {
  const Folder folder;
  for (int rank = 0; rank < 6; ++rank) {
    folder.write("t." + std::to_string(rank) + ".et", et({compute(rank % 2 == 0 ? 1 : 2)}));
  }
  const auto set = load_ranks(folder / "t", 6);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->programs.size(), 2U);
  EXPECT_EQ(set->program_of, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_TRUE(set->first_slot.empty());
}

TEST(Load, ranks_that_send_to_their_neighbours_share_a_program) {
  // Rank r sends to r + 1 and receives from r - 1; the ends differ.
  const Folder folder;
  for (int rank = 0; rank < 6; ++rank) {
    std::vector<ProtoNode> nodes{compute(0)};
    if (rank > 0) {
      nodes.push_back(message(1, false, rank - 1));
    }
    if (rank < 5) {
      nodes.push_back(message(2, true, rank + 1));
    }
    folder.write("t." + std::to_string(rank) + ".et", et(nodes));
  }
  const auto set = load_ranks(folder / "t", 6);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program_of, (std::vector<std::uint32_t>{0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(set->programs[1].nodes[1].peer, -1);
  EXPECT_EQ(set->programs[1].nodes[2].peer, 1);
  EXPECT_EQ(set->programs[1].nodes[1].tag, 7U);
}

TEST(Load, ranks_in_groups_of_their_own_share_a_program) {
  const Folder folder;
  const std::string groups =
      folder.write("g.json", R"({"1": [0, 1], "2": [2, 3], "3": [0, 2], "40": [3, 1]})");
  const char* names[4][2] = {{"1", "3"}, {"1", "40"}, {"2", "3"}, {"2", "40"}};
  for (int rank = 0; rank < 4; ++rank) {
    folder.write("t." + std::to_string(rank) + ".et",
                 et({all_reduce(0, 8, names[rank][0]), all_reduce(1, 8, names[rank][1]),
                     all_reduce(2, 8, "0"), all_reduce(3, 8, names[rank][0])}));
  }
  const auto set = load_ranks(folder / "t", 4, groups);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->programs.size(), 1U);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto& nodes = set->program(rank).nodes;
    EXPECT_EQ(set->groups[set->group(rank, nodes[0].group)].name, names[rank][0]);
    EXPECT_EQ(set->groups[set->group(rank, nodes[1].group)].name, names[rank][1]);
    EXPECT_EQ(set->group(rank, nodes[2].group), 0U);
    EXPECT_EQ(nodes[0].group, nodes[3].group);
  }
  EXPECT_EQ(set->groups[set->group(3, 2)].ranks, (std::vector<std::int64_t>{3, 1}));
}

TEST(Load, a_rank_that_names_one_group_where_another_names_two_has_another_program) {
  const Folder folder;
  const std::string groups = folder.write("g.json", R"({"1": [0, 1], "2": [0, 1]})");
  folder.write("t.0.et", et({all_reduce(0, 8, "1"), all_reduce(1, 8, "2")}));
  folder.write("t.1.et", et({all_reduce(0, 8, "1"), all_reduce(1, 8, "1")}));
  const auto set = load_ranks(folder / "t", 2, groups);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->programs.size(), 2U);
}

TEST(Load, programs_that_differ_share_equal_names) {
  const Folder folder;
  folder.write("t.0.et", et({compute(0), compute(1)}));
  folder.write("t.1.et", et({compute(0), compute(1, {0})}));
  const auto set = load_ranks(folder / "t", 2);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  ASSERT_EQ(set->programs.size(), 2U);
  EXPECT_EQ(set->programs[0].names.c_str(), set->programs[1].names.c_str());
}

TEST(Load, one_file_for_all_is_found_under_each_of_its_names) {
  for (const char* name : {"t.all.et", "t.et", "t"}) {
    const Folder folder;
    folder.write(name, et({compute(1)}));
    const auto set = load_ranks(folder / "t", 1'048'576);
    ASSERT_TRUE(set.has_value()) << set.error().to_string();
    EXPECT_EQ(set->ranks(), 1'048'576);
    EXPECT_EQ(set->programs.size(), 1U);
    // 4 bytes a rank for its program's number, and the one program.
    EXPECT_LT(bytes_of(*set).value(), 4 * 1'048'576 + 1000);
  }
}

TEST(Load, links_to_one_file_are_the_file) {
  const Folder folder;
  folder.write("t.all.et", et({message(0, true, 3)}));
  for (const char* name : {"t.0.et", "t.1.et"}) {
    std::filesystem::create_symlink(folder / "t.all.et", folder / name);
  }
  std::filesystem::create_hard_link(folder / "t.all.et", folder / "t.2.et");
  folder.write("t.3.et", et({}));
  const auto set = load_ranks(folder / "t", 4);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  for (const std::int64_t rank : {0, 1, 2}) {
    EXPECT_EQ(set->program(rank).nodes[0].peer + rank, 3);
  }
  EXPECT_TRUE(set->program(3).nodes.empty());
}

TEST(Load, missing_rank_files_are_named) {
  const Folder folder;
  folder.write("t.0.et", et({}));
  folder.write("t.2.et", et({}));
  const std::string text = mistakes_of(load_ranks(folder / "t", 4));
  EXPECT_THAT(text, HasSubstr("t.1.et: no such file"));
  EXPECT_THAT(text, HasSubstr("t.3.et: no such file"));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "u", 4)), HasSubstr("u.0.et"));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 0)), HasSubstr("ranks: found '0'"));
}

TEST(Load, peers_that_do_not_exist_and_own_sides_that_are_others_are_mistakes) {
  const Folder folder;
  folder.write("t.0.et", et({message(0, true, 9)}));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 1)),
              HasSubstr("comm_dst: found '9', expected a rank from 0 to 0 other than its own, 0"));
  ProtoNode node = message(0, true, 1);
  attribute(node, "comm_src")->set_int32_val(1);
  folder.write("t.0.et", et({node}));
  folder.write("t.1.et", et({}));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 2)),
              HasSubstr("comm_src: found '1', expected the rank of the file, 0"));
}

TEST(Load, groups_are_checked) {
  const Folder folder;
  folder.write("t.et", et({all_reduce(0, 8, "2")}));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 4)), HasSubstr("process group '2'"));
  const auto with = [&](const std::string& text) {
    return mistakes_of(load_ranks(folder / "t", 4, folder.write("g.json", text)));
  };
  EXPECT_THAT(with(R"({"2": [0, 1]})"), HasSubstr("a group of rank 2, which takes part in it"));
  EXPECT_THAT(with(R"({"2": [0, 4]})"), HasSubstr("found '4', expected a rank from 0 to 3"));
  EXPECT_THAT(with(R"({"2": [0, 1, 0]})"), HasSubstr("every rank once"));
  EXPECT_THAT(with(R"({"2": []})"), HasSubstr("at least one rank"));
  EXPECT_THAT(with(R"({"a": [0], "0": [1]})"), HasSubstr("a whole number above 0"));
  EXPECT_THAT(with(R"([1])"), HasSubstr("a map of group names to ranks"));
  EXPECT_THAT(with(R"({"2": [0, 1)"), HasSubstr("g.json:1"));
  EXPECT_TRUE(
      load_ranks(folder / "t", 4, folder.write("g.json", R"({"2": [3, 2, 1, 0]})")).has_value());
}

TEST(Load, metadata_nodes_define_groups) {
  const Folder folder;
  const auto trace = [](const std::string& ranks, const std::string& used) {
    ProtoNode node = proto_node(0, ChakraProtoMsg::METADATA_NODE);
    node.mutable_inputs()->set_values(R"(["[{"pg_name": "0", "ranks": []}, {"pg_name": "5", )"
                                      R"("ranks": )" +
                                      ranks + R"(}]"])");
    ProtoNode cut = node;  // two characters at each end go
    cut.mutable_inputs()->set_values(R"(['[{"pg_name": "0", "ranks": []}, {"pg_name": "5", )"
                                     R"("ranks": )" +
                                     ranks + R"(}]'])");
    return et({cut, all_reduce(1, 8, used)});
  };
  folder.write("t.0.et", trace("[0, 1]", "5"));
  folder.write("t.1.et", trace("[0, 1]", "5"));
  folder.write("t.2.et", trace("[2]", "5"));
  folder.write("t.3.et", trace("[]", "5"));
  const auto set = load_ranks(folder / "t", 4);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->groups.size(), 4U);  // the world and three that are called 5
  EXPECT_EQ(set->groups[set->group(1, 1)].ranks, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(set->groups[set->group(2, 1)].ranks, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(set->groups[set->group(3, 1)].ranks, (std::vector<std::int64_t>{0, 1, 2, 3}));
  folder.write("t.3.et", trace("[4]", "5"));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 4)), HasSubstr("a rank from 0 to 3"));
  folder.write("t.3.et", trace("[3], nonsense", "5"));
  EXPECT_THAT(mistakes_of(load_ranks(folder / "t", 4)), HasSubstr("inputs.values"));
}

TEST(Load, a_file_larger_than_the_window_reads_as_a_small_one) {
  // Names of 4 KiB, of which the window holds 1,024.
  const Folder folder;
  std::vector<ProtoNode> nodes;
  for (std::uint64_t id = 0; id < 3000; ++id) {
    nodes.push_back(compute(id));
    nodes.back().set_name(std::string(4096, static_cast<char>('a' + id % 26)));
    if (id > 0) {
      nodes.back().add_ctrl_deps(id - 1);
    }
  }
  const std::string bytes = et(nodes);
  ASSERT_GT(bytes.size(), 2 * ByteWindow::kWindow);
  const auto set = load_bytes(folder, bytes);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  ASSERT_EQ(set->program(0).nodes.size(), 3000U);
  EXPECT_EQ(set->program(0).names.size(), 26U * 4097);
  EXPECT_EQ(set->program(0).name_of(set->program(0).nodes[27]), std::string(4096, 'b'));
  EXPECT_FALSE(load_bytes(folder, bytes.substr(0, bytes.size() - 1)).has_value());
}

/// Nodes of random kinds; `rank` decides peers and groups as parallel runs do: a ring, and groups
/// of the ranks with the same rank / 2 (1, 2, ...) or the same parity (100, 101).
std::vector<ProtoNode> random_nodes(const std::vector<std::uint8_t>& kinds, std::int64_t rank,
                                    std::int64_t ranks) {
  std::vector<ProtoNode> nodes;
  for (std::uint64_t id = 0; id < kinds.size(); ++id) {
    switch (kinds[id] % 5) {
      case 0:
        nodes.push_back(compute(id));
        break;
      case 1:
        nodes.push_back(all_reduce(id, kinds[id], std::to_string(1 + rank / 2)));
        break;
      case 2:
        nodes.push_back(all_reduce(id, kinds[id], std::to_string(100 + rank % 2)));
        break;
      case 3:
        nodes.push_back(message(id, true, (rank + 1) % ranks, kinds[id]));
        break;
      default:
        nodes.push_back(message(id, false, (rank + ranks - 1) % ranks, kinds[id]));
    }
    if (id > 0) {
      nodes.back().add_data_deps(kinds[id] % id);
    }
  }
  return nodes;
}

/// The meaning of every node, without programs or slots.
std::string meaning(const TraceSet& set, std::int64_t rank) {
  const Program& program = set.program(rank);
  std::string text;
  for (const Node& node : program.nodes) {
    text += std::to_string(node.id) + " " + std::string(program.name_of(node)) + " " +
            std::to_string(static_cast<int>(node.type)) + " " + std::to_string(node.size.value()) +
            " peer " + std::to_string(node.peer + rank) + " group " +
            set.groups[set.group(rank, node.group)].name + " after";
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      text += " " + std::to_string(program.dependencies[node.first_dependency + d]);
    }
    text += "\n";
  }
  return text;
}

TEST(Load, traces_in_which_no_rank_does_anything_are_no_step) {
  const Folder folder;
  folder.write("t.0.et", et({}));
  folder.write("t.1.et", et({proto_node(0, ChakraProtoMsg::METADATA_NODE)}));
  const auto idle = with_work(load_ranks(folder / "t", 2).value(), "t");
  ASSERT_FALSE(idle.has_value());
  EXPECT_THAT(idle.error().to_string(), HasSubstr("t: nodes: one of any rank that computes"));
  folder.write("t.1.et", et({compute(1)}));
  EXPECT_TRUE(with_work(load_ranks(folder / "t", 2).value(), "t").has_value());
}

RC_GTEST_PROP(LoadProperty, ranks_read_together_mean_what_each_means_alone, ()) {
  const auto kinds =
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  const auto others =
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  constexpr std::int64_t kRanks = 6;
  const Folder folder;
  const std::string groups =
      folder.write("g.json", R"({"1":[0,1],"2":[2,3],"3":[4,5],"100":[0,2,4],"101":[1,3,5]})");
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    // Rank 3 does something else.
    folder.write("t." + std::to_string(rank) + ".et",
                 et(random_nodes(rank == 3 ? others : kinds, rank, kRanks)));
  }
  const auto together = load_ranks(folder / "t", kRanks, groups);
  RC_ASSERT(together.has_value());
  const auto rank = *rc::gen::inRange<std::int64_t>(0, kRanks);
  const Folder lone;  // the other ranks have empty files
  for (std::int64_t other = 0; other < kRanks; ++other) {
    lone.write("t." + std::to_string(other) + ".et",
               other == rank ? et(random_nodes(rank == 3 ? others : kinds, rank, kRanks)) : et({}));
  }
  const auto alone = load_ranks(lone / "t", kRanks, groups);
  RC_ASSERT(alone.has_value());
  RC_ASSERT(meaning(*together, rank) == meaning(*alone, rank));
  RC_ASSERT(together->programs.size() <= 4U);  // both, each with and without the ring's wrap
}

}  // namespace
}  // namespace orrery::chakra
