// SPDX-License-Identifier: Apache-2.0
// Which implementation lists a run needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compat/astra/run.h"

namespace orrery::astra {
namespace {

using ::testing::HasSubstr;

/// An all-reduce on a ring of 2 by a ring of 4, of which only the all-reduce list is given.
RunInput only_all_reduce() {
  RunInput input;
  input.network = {{Building::ring, 2, Bandwidth(50e9), Time(500'000)},
                   {Building::ring, 4, Bandwidth(50e9), Time(500'000)}};
  input.system.implementation[static_cast<std::size_t>(Operation::all_reduce)] = {
      Implementation{Algorithm::ring}, Implementation{Algorithm::ring}};
  chakra::Node node;
  node.type = chakra::NodeType::comm_coll;
  node.size = Bytes(1 << 20);
  node.has_size = true;
  input.traces.programs.resize(1);
  input.traces.programs[0].nodes = {node};
  input.traces.programs[0].names = std::string(1, '\0');
  input.traces.program_of.assign(8, 0);
  input.traces.groups.resize(1);
  return input;
}

TEST(AstraLists, AnAllReduceNeedsItsOwnOnly) {
  EXPECT_TRUE(run(only_all_reduce(), {}));
}

TEST(AstraLists, WithoutTheQuirkItsPhasesNeedTheirs) {
  RunOptions options;
  options.quirks.set(Quirk::all_reduce_list, false);
  const auto refused = run(only_all_reduce(), options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(),
              HasSubstr("reduce-scatter-implementation has 0 entries for 2 dimensions"));
}

TEST(AstraLists, AOneRingDoesNotStandForADimension) {
  RunInput input = only_all_reduce();
  for (const Operation operation : {Operation::reduce_scatter, Operation::all_gather}) {
    input.system.implementation[static_cast<std::size_t>(operation)] = {
        Implementation{Algorithm::one_ring}};
  }
  RunOptions options;
  options.quirks.set(Quirk::all_reduce_list, false);
  EXPECT_FALSE(run(input, options));
}

}  // namespace
}  // namespace orrery::astra
