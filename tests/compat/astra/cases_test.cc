// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's reference cases, to the nanosecond (index.tsv, quirks.tsv).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "compat/astra/load.h"
#include "compat/astra/run.h"

namespace orrery::astra {
namespace {

const std::string kFolder = std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/";

struct Case {
  std::string name;
  Backend backend = Backend::unaware;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  for (char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<Case> cases_of(const std::string& table) {
  std::ifstream file(kFolder + table);
  std::string line;
  std::getline(file, line);
  std::vector<Case> cases;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split(line);
    cases.push_back({fields[0], fields[1] == "aware" ? Backend::aware : Backend::unaware});
  }
  return cases;
}

struct Ran {
  RunInput input;
  RunResult result;
  std::vector<std::int64_t> cycles;   ///< by rank
  std::vector<std::int64_t> exposed;  ///< by rank
};

Result<Ran> run_case(const Case& which, RunOptions options) {
  const std::string folder = kFolder + "cases/" + which.name + "/";
  Files files{folder + "trace", folder + "system.json", folder + "network.yml",
              folder + "memory.json", std::nullopt};
  if (std::filesystem::exists(folder + "groups.json")) {
    files.groups = folder + "groups.json";
  }
  options.backend = which.backend;
  options.rendezvous = which.name.find("rendezvous") != std::string::npos;
  Result<Loaded> loaded = load_files(files, options.quirks);
  if (!loaded) {
    return fail(std::move(loaded.error()));
  }
  Result<RunResult> result = run(loaded->input, options);
  if (!result) {
    return fail(std::move(result.error()));
  }
  Ran ran{std::move(loaded->input), std::move(*result), {}, {}};
  for (std::uint32_t index : ran.result.class_of) {
    ran.cycles.push_back(ran.result.classes[index].finish.value() / 1000);
    ran.exposed.push_back(ran.result.classes[index].exposed.value() / 1000);
  }
  return ran;
}

RunOptions folding(bool fold) {
  RunOptions options;
  options.fold = fold;
  return options;
}
RunOptions without_quirks() {
  RunOptions options;
  options.quirks = Quirks::none();
  return options;
}

ConfigNode expected_of(const std::string& name) {
  auto loaded = load_config(kFolder + "cases/" + name + "/expected.json");
  EXPECT_TRUE(loaded) << name;
  return loaded ? *loaded : ConfigNode{};
}

std::int64_t number(const ConfigNode& node) {
  return std::stoll(node.text);
}

class Cases : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

std::string case_name(const ::testing::TestParamInfo<std::tuple<Case, bool>>& info) {
  std::string name = std::get<0>(info.param).name;
  if (name.find("aware") == std::string::npos) {
    name += std::get<0>(info.param).backend == Backend::aware ? "_aware" : "_unaware";
  }
  return name + (std::get<1>(info.param) ? "_folded" : "_every_rank") + std::to_string(info.index);
}

TEST_P(Cases, equal_the_reference_to_the_nanosecond) {
  const auto& [which, fold] = GetParam();
  const auto ran = run_case(which, folding(fold));
  ASSERT_TRUE(ran) << ran.error().to_string();
  const ConfigNode expected = expected_of(which.name);
  EXPECT_EQ(*std::max_element(ran->cycles.begin(), ran->cycles.end()),
            number(*expected.find("cycles_ns_max")));
  EXPECT_EQ(*std::min_element(ran->cycles.begin(), ran->cycles.end()),
            number(*expected.find("cycles_ns_min")));
  EXPECT_EQ(ran->exposed[0], number(*expected.find("exposed_rank0")));
  if (const ConfigNode* per_rank = expected.find("cycles_per_rank")) {
    ASSERT_EQ(per_rank->items.size(), ran->cycles.size());
    for (std::size_t rank = 0; rank < ran->cycles.size(); ++rank) {
      EXPECT_EQ(ran->cycles[rank], number(per_rank->items[rank])) << "rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Astra, Cases,
                         ::testing::Combine(::testing::ValuesIn(cases_of("index.tsv")),
                                            ::testing::Bool()),
                         case_name);

// What ASTRA-sim does wrong, and what is right (quirks.tsv).

Result<Ran> run_quirk(const std::string& name, const RunOptions& options = {}) {
  return run_case({name, Backend::unaware}, options);
}

void expect_all(const std::string& name, std::int64_t cycles, const RunOptions& options = {}) {
  const auto ran = run_quirk(name, options);
  ASSERT_TRUE(ran) << ran.error().to_string();
  EXPECT_EQ(*std::max_element(ran->cycles.begin(), ran->cycles.end()), cycles) << name;
}

TEST(AstraMistakes, algorithms_for_powers_of_two_refuse_other_counts) {
  for (const std::string name :
       {"quirk_double_binary_tree_6_npus", "quirk_halving_doubling_6_npus"}) {
    const auto ran = run_quirk(name);
    ASSERT_FALSE(ran) << name;
    EXPECT_NE(ran.error().to_string().find("power of two"), std::string::npos);
  }
}

TEST(AstraMistakes, algorithms_for_powers_of_two_have_variants_for_any_count) {
  for (const std::string name :
       {"quirk_double_binary_tree_6_npus", "quirk_halving_doubling_6_npus"}) {
    const auto ran = run_case({name, Backend::unaware}, without_quirks());
    ASSERT_TRUE(ran) << ran.error().to_string();
    EXPECT_GT(ran->cycles[0], 0);
  }
}

TEST(AstraMistakes, without_endpoint_delay_its_terms_vanish) {
  expect_all("quirk_endpoint_delay_zero", 14 * 2941 + 7 * 243);
}

TEST(AstraMistakes, five_dimensions_all_take_part) {
  expect_all("quirk_five_dims_involved_dim_absent", 44919);
  expect_all("quirk_five_dims_involved_dim_given", 44919);
}

TEST(AstraMistakes, every_differing_dimension_is_charged_without_the_quirk) {
  RunOptions right;
  right.quirks.set(Quirk::first_dimension, false);
  expect_all("quirk_group_across_two_dims", 6093);
  expect_all("quirk_group_across_two_dims", 10 + 2 * (100 + 2 * 5000 + 48828 + 10) + 981, right);
  expect_all("quirk_p2p_peer_differs_in_two_dims", 4982);
  expect_all("quirk_p2p_peer_differs_in_two_dims", 100 + 2 * 5000 + 97656, right);
}

TEST(AstraMistakes, collectives_match_within_their_group) {
  expect_all("quirk_groups_on_both_halves_then_world", 86854);
  // The group of ranks 4-7 (36829 ns, see groups_2x4_all_reduce_1MiB) comes before the world's
  // 50025 ns (switch8_all_reduce_1MiB_ring).
  expect_all("quirk_subset_group_then_world_deadlock", 36829 + 50025);
  const auto delayed = run_quirk("quirk_subset_group_then_world_delayed_deadlock");
  ASSERT_TRUE(delayed) << delayed.error().to_string();
}

TEST(AstraMistakes, sizes_beyond_four_gigabytes_count) {
  expect_all("quirk_message_8GiB", 336107157);
}

TEST(AstraMistakes, no_bytes_means_compute_bound) {
  expect_all("quirk_roofline_zero_bytes", 100000 + 1000000);
}

TEST(AstraMistakes, missing_memory_bandwidth_or_splits_have_defaults_or_are_named) {
  const auto memory = run_quirk("quirk_local_mem_bw_missing");
  if (memory) {
    EXPECT_EQ(memory->cycles[0], 41324);
  } else {
    EXPECT_NE(memory.error().to_string().find("local-mem-bw"), std::string::npos);
  }
  const auto splits = run_quirk("quirk_splits_missing");
  if (splits) {
    EXPECT_GT(splits->cycles[0], 0);
  } else {
    EXPECT_NE(splits.error().to_string().find("preferred-dataset-splits"), std::string::npos);
  }
}

TEST(AstraMistakes, unknown_keys_are_named) {
  const auto ran = run_quirk("quirk_unknown_system_key");
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().to_string().find("endpoint-dely"), std::string::npos);
}

}  // namespace
}  // namespace orrery::astra
