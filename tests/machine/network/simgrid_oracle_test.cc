// SPDX-License-Identifier: Apache-2.0
/// Flows beside SimGrid itself, where it is installed (bench/simgrid).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "machine/network/flows.h"
#include "machine/topology/read.h"

namespace orrery::network {
namespace {

/// The program that asks SimGrid; empty where that is not installed.
std::string simgrid_flows() {
#ifdef ORRERY_SIMGRID_FLOWS
  return ORRERY_SIMGRID_FLOWS;
#else
  return {};
#endif
}

struct OracleFlow {
  std::string source;
  std::string target;
  std::int64_t bytes = 0;
  double start = 0;
};

/// Flows between hosts h-0 ... of all sizes, that start within 2 ms, many together.
std::vector<OracleFlow> random_flows(int hosts, int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<OracleFlow> flows;
  for (int f = 0; f < count; ++f) {
    const auto source = static_cast<int>(random() % static_cast<unsigned>(hosts));
    const auto ahead = static_cast<int>(random() % static_cast<unsigned>(hosts - 1)) + 1;
    flows.push_back({"h-" + std::to_string(source), "h-" + std::to_string((source + ahead) % hosts),
                     1000 * (1 + static_cast<std::int64_t>(random() % 20'000)),
                     1e-3 * static_cast<double>(random() % 3)});
  }
  return flows;
}

std::string oracle_platform(const std::string& topology, const std::string& parameters, int hosts) {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n<zone id=\"w\" routing=\"Full\">\n<cluster id=\"c\" "
         "prefix=\"h-\" radical=\"0-" +
         std::to_string(hosts - 1) +
         "\" suffix=\"\" speed=\"1Gf\" bw=\"12.5GBps\" lat=\"0us\" loopback_bw=\"100GBps\" "
         "loopback_lat=\"0\" topology=\"" +
         topology + "\" topo_parameters=\"" + parameters + "\"/>\n</zone></platform>\n";
}

/// Returns what SimGrid says, by flow.
std::vector<double> ask_simgrid(const std::string& platform, const std::string& flows) {
  const std::string command = simgrid_flows() + " " + platform + " flows " + flows + " 2>/dev/null";
  std::vector<double> finish;
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) {
    return finish;
  }
  for (double at = 0; std::fscanf(output, "%lf", &at) == 1;) {
    finish.push_back(at);
  }
  pclose(output);
  return finish;
}

class SimGridOracle : public ::testing::TestWithParam<std::tuple<const char*, const char*, int>> {};

TEST_P(SimGridOracle, RandomFlowsEndWhenItSays) {
  if (simgrid_flows().empty()) {
    GTEST_SKIP() << "libsimgrid-dev is not installed";
  }
  const auto& [topology, parameters, hosts] = GetParam();
  const std::string stem =
      ::testing::TempDir() + "simgrid_oracle_" + std::to_string(hosts) + topology;
  const std::string platform = stem + ".xml";
  std::ofstream(platform) << oracle_platform(topology, parameters, hosts);
  const auto graph = topology::load_topology(platform, "--topology");
  ASSERT_TRUE(graph) << graph.error().to_string();
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const std::string file = stem + ".csv";
    {
      std::ofstream lines(file);
      lines << "source,target,bytes,start_s\n";
      for (const OracleFlow& flow : random_flows(hosts, 10 * hosts, seed)) {
        lines << flow.source << "," << flow.target << "," << flow.bytes << "," << flow.start
              << "\n";
      }
    }
    const auto flows = load_flows(file, *graph);
    ASSERT_TRUE(flows) << flows.error().to_string();
    const std::vector<double> expected = ask_simgrid(platform, file);
    ASSERT_EQ(expected.size(), flows->size()) << "simgrid_flows failed";
    topology::Router router(*graph, topology::Routing::automatic, 0);
    const auto run = run_flows(router, *flows);
    ASSERT_TRUE(run) << run.error().to_string();
    for (std::size_t f = 0; f < flows->size(); ++f) {
      // It stops within its precision of 1e-9 s of an end, of each before.
      EXPECT_NEAR(to_seconds(run->finish[f]), expected[f], 2e-9 + 1e-6 * expected[f])
          << "flow " << f << " of seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, SimGridOracle,
                         ::testing::Values(std::tuple("FAT_TREE", "2;4,4;1,2;1,1", 16),
                                           std::tuple("FAT_TREE", "3;4,2,4;1,2,2;1,2,1", 32),
                                           std::tuple("TORUS", "3,3,2", 18),
                                           std::tuple("DRAGONFLY", "2,1;3,2;2,1;2", 24)));

}  // namespace
}  // namespace orrery::network
