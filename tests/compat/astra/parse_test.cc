// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "compat/astra/load.h"

namespace orrery::astra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ConfigNode json(const std::string& text) {
  auto node = parse_config(text, "system.json", ConfigSyntax::json);
  EXPECT_TRUE(node) << node.error().to_string();
  return node ? *node : ConfigNode{};
}
ConfigNode yaml(const std::string& text) {
  auto node = parse_config(text, "network.yml", ConfigSyntax::yaml);
  EXPECT_TRUE(node) << node.error().to_string();
  return node ? *node : ConfigNode{};
}

struct Parsed {
  System system;
  std::vector<std::string> warnings;
};

Parsed system_of(const std::string& text) {
  Parsed parsed;
  const ConfigNode node = json(text);
  auto system = parse_system(node, parsed.warnings);
  EXPECT_TRUE(system) << system.error().to_string();
  parsed.system = system ? *system : System{};
  return parsed;
}
std::string mistakes_of(const std::string& text) {
  std::vector<std::string> warnings;
  const ConfigNode node = json(text);
  auto system = parse_system(node, warnings);
  EXPECT_FALSE(system) << text;
  return system ? "" : system.error().to_string();
}
/// The text of a map with splits and memory bandwidth, so that nothing else warns.
std::string with(const std::string& fields) {
  return R"({"preferred-dataset-splits": 1, "local-mem-bw": 1600, )" + fields + "}";
}

std::string network_mistakes(const std::string& text) {
  const ConfigNode node = yaml(text);
  auto network = parse_network(node, Quirks::all());
  EXPECT_FALSE(network) << text;
  return network ? "" : network.error().to_string();
}

std::string memory_mistakes(const std::string& text) {
  const ConfigNode node = json(text);
  auto memory = parse_memory(node);
  EXPECT_FALSE(memory) << text;
  return memory ? "" : memory.error().to_string();
}

TEST(AstraSystem, EveryKeyIsRead) {
  const System system = system_of(R"({
    "scheduling-policy": "EXPLICIT", "endpoint-delay": 7, "preferred-dataset-splits": 4,
    "active-chunks-per-dimension": 2, "all-reduce-implementation": ["ring", "direct2"],
    "all-gather-implementation": ["doubleBinaryTree", "halvingDoubling"],
    "reduce-scatter-implementation": ["oneDirect3"], "all-to-all-implementation": "oneRing",
    "collective-optimization": "baseline", "local-mem-bw": 50.5, "peak-perf": 2,
    "roofline-enabled": 1, "replay-only": 1, "track-local-mem": true,
    "L": 1, "o": 2, "g": 3, "G": 0.25, "model-shared-bus": 1,
    "inter-dimension-scheduling": "themis", "intra-dimension-scheduling": "SCF",
    "all-reduce-implementation-custom": ["a/b"], "per-node-custom-implementation": "c.yml",
    "local-mem-trace-filename": "x", "trace-enabled": 0})")
                            .system;
  EXPECT_EQ(system.policy, Policy::explicit_priority);
  EXPECT_EQ(system.endpoint_delay, Time(7'000));
  EXPECT_EQ(system.splits, 4);
  EXPECT_EQ(system.active_chunks, 2);
  const auto& lists = system.implementation;
  EXPECT_THAT(lists[0],
              ElementsAre(Implementation{Algorithm::ring}, Implementation{Algorithm::direct, 2}));
  EXPECT_THAT(lists[1], ElementsAre(Implementation{Algorithm::double_binary_tree},
                                    Implementation{Algorithm::halving_doubling}));
  EXPECT_THAT(lists[2], ElementsAre(Implementation{Algorithm::one_direct, 3}));
  EXPECT_THAT(lists[3], ElementsAre(Implementation{Algorithm::one_ring}));
  EXPECT_FALSE(system.local_bandwidth_aware);
  EXPECT_EQ(system.local_memory_bandwidth, Bandwidth(50.5e9));
  EXPECT_EQ(system.peak, FlopRate(2e12));
  EXPECT_TRUE(system.roofline && system.replay_only && system.track_local_memory);
  EXPECT_EQ(system.bus, (Bus{Time(1'000), Time(2'000), Time(3'000), 0.25, true}));
  EXPECT_EQ(system.inter_dimension, InterDimension::themis);
  EXPECT_EQ(system.intra_dimension, IntraDimension::smallest_chunk_first);
  EXPECT_EQ(system.custom[0], "a/b");
  EXPECT_FALSE(system.custom[1]);
  EXPECT_EQ(system.custom_by_node, "c.yml");
}

TEST(AstraSystem, MissingKeysHaveDocumentedDefaultsAndTwoOfThemWarn) {
  const Parsed parsed = system_of("{}");
  EXPECT_EQ(parsed.system.policy, Policy::lifo);
  EXPECT_EQ(parsed.system.endpoint_delay, Time(10'000));
  EXPECT_EQ(parsed.system.splits, 1);
  EXPECT_EQ(parsed.system.active_chunks, 1);
  EXPECT_TRUE(parsed.system.local_bandwidth_aware);
  EXPECT_FALSE(parsed.system.local_memory_bandwidth);
  EXPECT_FALSE(parsed.system.bus);
  EXPECT_THAT(parsed.system.implementation[0], IsEmpty());
  EXPECT_THAT(parsed.warnings, ElementsAre(HasSubstr("preferred-dataset-splits: missing"),
                                           HasSubstr("local-mem-bw: missing")));
}

TEST(AstraSystem, AnEndpointDelayOfZeroIsLegal) {
  EXPECT_EQ(system_of(with(R"("endpoint-delay": 0)")).system.endpoint_delay, Time(0));
}

TEST(AstraSystem, WholeNumbersMayBeWrittenAsFractionsButMustBeWhole) {
  EXPECT_EQ(system_of(with(R"("endpoint-delay": 4.0)")).system.endpoint_delay, Time(4'000));
  EXPECT_THAT(mistakes_of(with(R"("endpoint-delay": 4.5)")),
              HasSubstr("system.json:1: endpoint-delay: found '4.5', expected a whole number"));
}

TEST(AstraSystem, AnUnknownKeyIsAMistakeThatNamesTheNearest) {
  EXPECT_THAT(mistakes_of(with(R"("endpoint-dely": 999)")),
              HasSubstr("system.json:1: endpoint-dely: unknown field (did you mean "
                        "'endpoint-delay'?)"));
}

TEST(AstraSystem, AllMistakesAreReportedAtOnce) {
  const std::string mistakes = mistakes_of(R"({
    "scheduling-policy": "lifo",
    "preferred-dataset-splits": 0,
    "active-chunks-per-dimension": -1,
    "all-reduce-implementation": ["rign"],
    "all-gather-implementation": ["direct0"],
    "all-to-all-implementation": [],
    "collective-optimization": "localBWaware",
    "local-mem-bw": 0,
    "roofline-enabled": 2,
    "inter-dimension-scheduling": "themsi",
    "all-reduce-implementation-custom": ["a", "b"]})");
  for (const char* const part :
       {"system.json:2: scheduling-policy: found 'lifo', expected one of LIFO, FIFO, EXPLICIT",
        "system.json:3: preferred-dataset-splits: found '0', expected a whole number from 1",
        "system.json:4: active-chunks-per-dimension: found '-1', expected a whole number from 1",
        "in place of 'rign' (did you mean 'ring'?)", "a window from 1 to 99999 in 'direct0'",
        "all-to-all-implementation: found 'a list', expected at least one implementation",
        "(did you mean 'localBWAware'?)", "local-mem-bw: found '0', expected GB/s above 0",
        "roofline-enabled: found '2', expected 0 or 1", "(did you mean 'themis'?)",
        "expected one prefix of trace files"}) {
    EXPECT_THAT(mistakes, HasSubstr(part));
  }
}

TEST(AstraSystem, TheRooflineNeedsPeakAndMemoryBandwidth) {
  const std::string mistakes = mistakes_of(R"({"roofline-enabled": 1})");
  EXPECT_THAT(mistakes, HasSubstr("peak-perf: not given; expected TFLOPS above 0"));
  EXPECT_THAT(mistakes, HasSubstr("local-mem-bw: not given; expected GB/s above 0"));
}

TEST(AstraSystem, WhatAstraSimDoesNotReadIsHonouredOrWarnsByName) {
  // Its older names mean the same; what is not modelled says so.
  EXPECT_EQ(
      system_of(with(R"("inter-dimension-scheduling": "offlineGreedy")")).system.inter_dimension,
      InterDimension::themis);
  EXPECT_EQ(system_of(with(R"("inter-dimension-scheduling": "roundRobin")")).system.inter_dimension,
            InterDimension::round_robin);
  EXPECT_THAT(system_of(with(R"("inter-dimension-scheduling": "baseline",
                                "intra-dimension-scheduling": "FIFO")"))
                  .warnings,
              IsEmpty());
  EXPECT_THAT(system_of(with(R"("inter-dimension-scheduling": "offlineGreedyFlex",
                                "intra-dimension-scheduling": "RG", "boost-mode": 0,
                                "trace-enabled": 1,
                                "track-local-mem": 1, "local-mem-trace-filename": "x")"))
                  .warnings,
              ElementsAre(HasSubstr("'offlineGreedyFlex' is not modelled"),
                          HasSubstr("'RG' is not modelled"), HasSubstr("boost-mode: ignored"),
                          HasSubstr("trace-enabled: ignored")));
}

TEST(AstraSystem, TheBusCountsOnlyWhenShared) {
  const Parsed parsed =
      system_of(with(R"("L": 5, "o": 1, "g": 1, "G": 1, "local-reduction-delay": 2)"));
  EXPECT_FALSE(parsed.system.bus);
  EXPECT_EQ(parsed.warnings.size(), 5U);
}

TEST(AstraSystem, ListsHaveOneEntryPerDimensionOrSpanAll) {
  const auto check = [](const std::string& list, std::size_t dimensions) {
    const ConfigNode node = json(with(R"("all-reduce-implementation": )" + list));
    std::vector<std::string> warnings;
    const auto system = parse_system(node, warnings);
    const auto checked = check_lists(node, *system, dimensions);
    return checked ? std::string() : checked.error().to_string();
  };
  EXPECT_EQ(check(R"(["ring", "direct"])", 2), "");
  EXPECT_EQ(check(R"(["oneRing"])", 3), "");
  EXPECT_EQ(check(R"(["oneRing", "oneRing"])", 2), "");
  EXPECT_THAT(check(R"(["ring"])", 2),
              HasSubstr("system.json:1: all-reduce-implementation: found '1 entries', expected one "
                        "for each of the network's 2 dimensions"));
  EXPECT_THAT(check(R"(["ring", "ring", "ring"])", 2), HasSubstr("found '3 entries'"));
  EXPECT_THAT(check(R"(["ring", "oneRing"])", 2), HasSubstr("spans all dimensions"));
}

TEST(AstraNetwork, AGigabyteIsTwoToTheThirtyUnlessTheQuirkIsOff) {
  const ConfigNode node = yaml(
      "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 2, 8, 4 ]\n"
      "bandwidth: [ 200.0, 100, 50.5 ]\nlatency: [ 0, 500, 936.25 ]\n");
  Quirks quirks = Quirks::all();
  const auto network = parse_network(node, quirks);
  ASSERT_TRUE(network) << network.error().to_string();
  constexpr double kGib = 1'073'741'824;
  EXPECT_THAT(
      *network,
      ElementsAre(Dimension{Building::ring, 2, Bandwidth(200 * kGib), Time(0)},
                  Dimension{Building::fully_connected, 8, Bandwidth(100 * kGib), Time(500'000)},
                  Dimension{Building::switched, 4, Bandwidth(50.5 * kGib), Time(936'250)}));
  quirks.set(Quirk::gib_bandwidth, false);
  const auto decimal = parse_network(node, quirks);
  ASSERT_TRUE(decimal);
  EXPECT_EQ(decimal->front().bandwidth, Bandwidth(200e9));
}

TEST(AstraNetwork, MistakesNameTheList) {
  EXPECT_THAT(network_mistakes("topology: [ Ring ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 50 ]\n"
                               "latency: [ 5 ]\n"),
              HasSubstr("network.yml:2: npus_count: found 'a list', expected 1 entries, as many as "
                        "topology has"));
  const std::string mistakes = network_mistakes(
      "topology: [ Rings ]\nnpus_count: [ 8.5 ]\nbandwidth: [ x ]\nlatncy: [ 5 ]\n");
  EXPECT_THAT(mistakes, HasSubstr("did you mean 'Ring'?"));
  EXPECT_THAT(mistakes, HasSubstr("network.yml:2: npus_count[0]: found '8.5'"));
  EXPECT_THAT(mistakes, HasSubstr("network.yml:3: bandwidth[0]: found 'x'"));
  EXPECT_THAT(mistakes, HasSubstr("latency: required, but missing"));
  EXPECT_THAT(mistakes, HasSubstr("did you mean 'latency'?"));
}

TEST(AstraNetwork, FilesOfItsOtherBackEndsAreNamed) {
  EXPECT_THAT(network_mistakes("logical-dims: ['8', '2']"),
              HasSubstr("network.yml:1: logical-dims: found 'a file of ASTRA-sim's ns-3 back-end', "
                        "expected topology, npus_count, bandwidth and latency"));
  const auto loaded =
      load_files({"trace", "system.json", "clos.topo", "memory.json", {}, false}, Quirks::all());
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().to_string(),
              HasSubstr("clos.topo: found 'a topology of ASTRA-sim's htsim back-end', expected"));
}

TEST(AstraFiles, UnknownKeysMayBeWarnings) {
  std::vector<std::string> unknown;
  std::vector<std::string> warnings;
  EXPECT_TRUE(parse_system(json(with(R"("endpoint-dely": 5)")), warnings, &unknown));
  EXPECT_TRUE(parse_network(yaml("topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\n"
                                 "latency: [ 5 ]\nlinks_count: [ 2 ]\n"),
                            Quirks::all(), &unknown));
  EXPECT_TRUE(parse_memory(json(R"({"memory-type": "NO_MEMORY_EXPANSION", "size": 5})"), &unknown));
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_THAT(unknown,
              ElementsAre(HasSubstr("system.json:1: endpoint-dely: unknown field, ignored"),
                          HasSubstr("network.yml:5: links_count: unknown field, ignored"),
                          HasSubstr("size: unknown field, ignored")));
}

TEST(AstraNetwork, ValuesOutOfRangeAreMistakes) {
  const auto of = [](const std::string& npus, const std::string& bandwidth,
                     const std::string& latency) {
    return network_mistakes("topology: [ Ring, Ring ]\nnpus_count: [ 8, " + npus +
                            " ]\nbandwidth: [ 50, " + bandwidth + " ]\nlatency: [ 5, " + latency +
                            " ]\n");
  };
  EXPECT_THAT(of("1", "50", "5"), HasSubstr("at least 2 NPUs per dimension, not 1"));
  EXPECT_THAT(of("1073741824", "50", "5"), HasSubstr("at most 16777216 NPUs in all"));
  EXPECT_THAT(of("2", "0", "5"), HasSubstr("GB/s above 0 and at most 1e9, not 0"));
  EXPECT_THAT(of("2", "-3", "5"), HasSubstr("not -3"));
  EXPECT_THAT(of("2", "50", "-1"), HasSubstr("0 to 1e12 ns, not -1"));
  EXPECT_THAT(network_mistakes("topology: []\nnpus_count: []\nbandwidth: []\nlatency: []\n"),
              HasSubstr("topology: found 'a list', expected an entry per dimension"));
}

TEST(AstraMemory, EachKindNeedsItsKeys) {
  EXPECT_EQ(parse_memory(json(R"({"memory-type": "NO_MEMORY_EXPANSION"})"))->kind,
            RemoteMemoryKind::none);
  const auto pool = parse_memory(
      json(R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 3, "remote-mem-bw": 512})"));
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->kind, RemoteMemoryKind::pool);
  EXPECT_EQ(pool->latency, Time(3'000));
  EXPECT_EQ(pool->bandwidth, Bandwidth(512e9));
  const auto node = parse_memory(json(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION",
      "remote-mem-latency": 0, "remote-mem-bw": 1.5, "num-nodes": 8, "num-npus-per-node": 4})"));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->nodes, 8);
  EXPECT_EQ(node->npus_per_node, 4);
  const std::string mistakes =
      memory_mistakes(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 0})");
  for (const char* const part :
       {"remote-mem-latency: required, but missing", "remote-mem-bw: found '0', expected B/ns",
        "num-nodes: required, but missing", "num-npus-per-node: required, but missing"}) {
    EXPECT_THAT(mistakes, HasSubstr(part));
  }
  EXPECT_THAT(memory_mistakes(R"({"memory-type": "MEMORY_POL", "remote-memory-bw": 1})"),
              ::testing::AllOf(HasSubstr("did you mean 'MEMORY_POOL'?"),
                               HasSubstr("did you mean 'remote-mem-bw'?")));
}

TEST(AstraFiles, EveryReferenceCaseParsesButTheOneWithAnUnknownKey) {
  namespace fs = std::filesystem;
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(ORRERY_SOURCE_DIR "/tests/compat/astra/cases")) {
    ++cases;
    const std::string folder = entry.path().string();
    const auto system_file = load_config(folder + "/system.json");
    const auto network_file = load_config(folder + "/network.yml");
    const auto memory_file = load_config(folder + "/memory.json");
    ASSERT_TRUE(system_file && network_file && memory_file) << folder;
    std::vector<std::string> warnings;
    const auto system = parse_system(*system_file, warnings);
    EXPECT_EQ(system.has_value(), entry.path().filename() != "quirk_unknown_system_key") << folder;
    const auto network = parse_network(*network_file, Quirks::all());
    EXPECT_TRUE(network) << folder;
    EXPECT_TRUE(parse_memory(*memory_file)) << folder;
    if (system && network) {
      EXPECT_TRUE(check_lists(*system_file, *system, network->size())) << folder;
    }
  }
  EXPECT_EQ(cases, 102);
}

}  // namespace
}  // namespace orrery::astra
