// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/dimensions_only.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

std::string machine_with(const std::string& topology) {
  return "name: m\n"
         "device: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: hbm, capacity: 1 "
         "GB, "
         "bandwidth: 1 GB/s}]}\n"
         "network: [{name: net, kind: switch, size: 16, bandwidth: 12.5 GB/s, latency: 4 us}]\n"
         "topology: " +
         topology + "\n";
}

Result<Machine> parse(const std::string& topology) {
  return parse_config(machine_with(topology), "m.yaml", ConfigSyntax::yaml).and_then(parse_machine);
}

TEST(Wires, MessagesPassTheLinksOfTheTopology) {
  const auto machine = parse("{links: 'fat_tree:k=4', routing: d_mod_k}");
  ASSERT_TRUE(machine) << machine.error().to_string();
  topology::LinkMap map(machine->network);
  map.lay(machine->wires);
  EXPECT_EQ(map.links(), 96U);  // 48 cables
  std::vector<topology::Hop> hops;
  map.route(0, 15, hops);
  EXPECT_EQ(hops.size(), 6U);
  EXPECT_EQ(hops.front().bandwidth, Bandwidth(12.5e9));
  EXPECT_EQ(hops.front().latency, 1_us);
}

TEST(Wires, RefuseRoutingsThatLookAtAllFlowsByTheirName) {
  EXPECT_THAT(parse("{links: 'fat_tree:k=4', routing: colour}").error().to_string(),
              HasSubstr("topology.routing: found 'colour', expected a routing of single messages: "
                        "one of auto, stated, shortest"));
  EXPECT_THAT(parse("{links: 'fat_tree:k=4', routing: dimension_order}").error().to_string(),
              HasSubstr("topology.routing: found 'dimension_order'"));
}

TEST(Wires, AreWrittenAndReadBack) {
  const auto machine = parse("fat_tree:k=4");
  ASSERT_TRUE(machine) << machine.error().to_string();
  const auto again =
      parse_config(to_yaml(*machine), "again.yaml", ConfigSyntax::yaml).and_then(parse_machine);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*machine, *again);
}

TEST(Wires, ClosedFormsOnDimensionsRefuseATopology) {
  const auto machine = parse("fat_tree:k=4");
  ASSERT_TRUE(machine) << machine.error().to_string();
  EXPECT_THAT(check_dimensions_only(*machine, "estimate").error().to_string(),
              testing::AllOf(HasSubstr("topology"), HasSubstr("'fat_tree:k=4'"),
                             HasSubstr("estimate knows a machine's dimensions only")));
  Machine plain = *machine;
  plain.wires = {};
  EXPECT_TRUE(check_dimensions_only(plain, "estimate"));
}

TEST(Wires, MistakesNameTheLine) {
  EXPECT_THAT(parse("fat_tree:k=2").error().to_string(), HasSubstr("m.yaml:4: topology"));
  EXPECT_THAT(parse("fat_tree:k=2").error().to_string(), HasSubstr("at least 16 hosts"));
  EXPECT_THAT(parse("{links: 'fat_tree:k=4', rooting: ecmp}").error().to_string(),
              HasSubstr("did you mean 'routing'"));
  EXPECT_THAT(parse("{links: 'torus:shape=4x4', routing: colour}").error().to_string(),
              HasSubstr("a routing of single messages"));
  EXPECT_THAT(parse("{links: 'torus:shape=4x4', routing: d_mod_k}").error().to_string(),
              HasSubstr("needs a fat tree"));
}

}  // namespace
}  // namespace orrery::machine
