// SPDX-License-Identifier: Apache-2.0
// Figures that ASTRA-sim's project publishes or that its bundled examples give.
#include <gtest/gtest.h>

#include "compat/astra/run.h"

namespace orrery::astra {
namespace {

using chakra::CollectiveType;

constexpr double kGibibyte = 1'073'741'824;

/// The bundled system: ring, 4 chunks one after the other, endpoint delay 10, 50 GB/s, 500 ns.
RunInput bundled(std::int64_t npus, CollectiveType type, double memory_gbps) {
  RunInput input;
  input.network = {{Building::ring, npus, Bandwidth(50 * kGibibyte), Time(500'000)}};
  input.system.splits = 4;
  input.system.local_memory_bandwidth = Bandwidth(memory_gbps * 1e9);
  for (auto& list : input.system.implementation) {
    list = {Implementation{Algorithm::ring}};
  }
  chakra::Node node;
  node.type = chakra::NodeType::comm_coll;
  node.collective = type;
  node.size = Bytes(1 << 20);
  node.has_size = true;
  input.traces.programs.resize(1);
  input.traces.programs[0].nodes = {node};
  input.traces.programs[0].names = std::string(1, '\0');
  input.traces.program_of.assign(static_cast<std::size_t>(npus), 0);
  input.traces.groups.resize(1);
  return input;
}

std::int64_t published_cycles(const RunInput& input, Backend backend = Backend::unaware) {
  RunOptions options;
  options.backend = backend;
  const auto result = run(input, options);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? result->classes.front().finish.value() / 1000 : 0;
}

struct Published {
  CollectiveType type;
  std::int64_t npus;
  std::int64_t cycles;
};

class AstraPublished : public ::testing::TestWithParam<Published> {};

TEST_P(AstraPublished, TheBundledExamplesTakeTheCyclesThatTheyTakeThere) {
  EXPECT_EQ(published_cycles(bundled(GetParam().npus, GetParam().type, 1600)), GetParam().cycles);
}

INSTANTIATE_TEST_SUITE_P(Rings, AstraPublished,
                         ::testing::Values(Published{CollectiveType::all_reduce, 4, 43000},
                                           Published{CollectiveType::all_reduce, 8, 64440},
                                           Published{CollectiveType::all_reduce, 16, 99640},
                                           Published{CollectiveType::all_gather, 4, 64744},
                                           Published{CollectiveType::all_gather, 8, 151016},
                                           Published{CollectiveType::all_gather, 16, 323560},
                                           Published{CollectiveType::reduce_scatter, 4, 22240},
                                           Published{CollectiveType::reduce_scatter, 8, 33080},
                                           Published{CollectiveType::reduce_scatter, 16, 50740},
                                           Published{CollectiveType::all_to_all, 4, 41560},
                                           Published{CollectiveType::all_to_all, 8, 125480},
                                           Published{CollectiveType::all_to_all, 16, 391240}));

TEST(AstraRegression, TakesThePublishedCycles) {
  EXPECT_EQ(published_cycles(bundled(8, CollectiveType::all_reduce, 50), Backend::aware), 117780);
}

}  // namespace
}  // namespace orrery::astra
