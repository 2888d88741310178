// SPDX-License-Identifier: Apache-2.0
/// One rank for many gives what every rank by itself gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "compat/astra/run.h"
#include "random_input.h"
#include "small_input.h"

namespace orrery::astra {
namespace {

using small_tests::dimension;
using small_tests::input_of;
using small_tests::kMegabyte;
using small_tests::run_engine;

Time finish(const RunResult& result, std::size_t rank) {
  return result.classes[result.class_of[rank]].finish;
}

void expect_equal(const RunInput& input, RunOptions options) {
  options.fold = true;
  const auto folded = run(input, options);
  options.fold = false;
  const auto unfolded = run(input, options);
  for (const chakra::Group& group : input.traces.groups) {
    RC_LOG() << "group";
    for (std::int64_t rank : group.ranks) {
      RC_LOG() << " " << rank;
    }
    RC_LOG() << "\n";
  }
  RC_LOG() << describe(input, options) << "\n";
  if (!unfolded) {
    RC_LOG() << unfolded.error().to_string() << "\n";
  }
  RC_ASSERT(folded.has_value() == unfolded.has_value());
  if (!folded) {
    RC_CLASSIFY(true, "refused");
    return;
  }
  for (std::size_t rank = 0; rank < input.traces.program_of.size(); ++rank) {
    RC_LOG() << finish(*folded, rank).value() << "/" << finish(*unfolded, rank).value() << " ";
  }
  const bool fewer = folded->classes.size() < unfolded->classes.size();
  RC_CLASSIFY(fewer, "folded");
  RC_CLASSIFY(!fewer, "unfolded");
  RC_ASSERT(fewer || !folded->unfolded.empty());
  for (std::size_t rank = 0; rank < input.traces.program_of.size(); ++rank) {
    RC_ASSERT(finish(*folded, rank) == finish(*unfolded, rank));
  }
}

RC_GTEST_PROP(AstraFold, one_rank_stands_for_all, ()) {
  const RunInput input =
      random_input({2, 4}, {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling});
  expect_equal(input, random_options());
}

RC_GTEST_PROP(AstraFold, one_rank_stands_for_all_where_links_have_one_sender, ()) {
  RunInput input =
      random_input({2, 3, 4, 8}, {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling});
  while (input.network.size() > 1) {
    input.traces.program_of.resize(input.traces.program_of.size() /
                                   static_cast<std::size_t>(input.network.back().size));
    input.network.pop_back();
  }
  for (auto& list : input.system.implementation) {
    list.resize(1);
  }
  for (chakra::Node& node : input.traces.programs[0].nodes) {
    node.involved &= node.has_involved ? 1 : ~0U;
  }
  input.system.active_chunks = pick(1, 2);
  RunOptions options = random_options();
  options.queues_per_dimension = 1;
  options.backend = Backend::aware;
  expect_equal(input, options);
}

RC_GTEST_PROP(AstraFold, one_rank_stands_for_each_colour, ()) {
  const RunInput input =
      random_stages({2, 3, 4}, {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling,
                                Algorithm::double_binary_tree});
  expect_equal(input, random_options());
}

/// Loads are those of all ranks: of several lines the second is planned with what the first has
/// left.
TEST(AstraFold, LinesUnderThemisArePlannedByWhicheverComesFirst) {
  const Dimension ring = dimension(Building::ring, 4, 100);
  chakra::Node reduce = small_tests::collective(0, chakra::CollectiveType::all_reduce, kMegabyte);
  reduce.has_involved = true;
  reduce.involved_entries = 3;
  for (const auto& [involved, folds] : {std::pair(7U, true), {3U, false}}) {
    reduce.involved = involved;
    RunInput input = input_of({ring, ring, ring}, Algorithm::ring, {reduce});
    input.system.inter_dimension = InterDimension::themis;
    const RunResult folded = run_engine(input, {});
    EXPECT_EQ(folded.classes.size() == 1, folds) << involved;
    EXPECT_EQ(folded.unfolded.empty(), folds);
    EXPECT_THAT(folded.unfolded, ::testing::Each(::testing::HasSubstr("Themis")));
  }
}

}  // namespace
}  // namespace orrery::astra
