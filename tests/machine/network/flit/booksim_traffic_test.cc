// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/booksim_traffic.h"

#include <gtest/gtest.h>

#include "machine/network/flit/experiment.h"
#include "machine/network/flit/random.h"
#include "machine/network/flit/traffic.h"

namespace orrery::flit {
namespace {

TEST(BookSimFiles, HotspotsAreNodesAndTheirWeights) {
  const auto pattern = [](const std::string& traffic) {
    return parse_booksim("topology = mesh; k = 8; n = 2; traffic = " + traffic + ";", "file")
        ->pattern;
  };
  EXPECT_EQ(pattern("hotspot(5)"), "hotspot:5");
  EXPECT_EQ(pattern("hotspot({5})"), "hotspot:5");
  EXPECT_EQ(pattern("hotspot({{0,63}})"), "hotspot:0,63");
  EXPECT_EQ(pattern("hotspot({{0,63},{1,3}})"), "hotspot:0*1,63*3");
  EXPECT_EQ(pattern("hotspot({{0,9,63},{2}})"), "hotspot:0*2,9*2,63*2");
  EXPECT_EQ(pattern("hotspot({0,63})"), "hotspot:0*63");          // as there: one node, its weight
  EXPECT_EQ(pattern("hotspot({1,2},{3})"), "hotspot:1*2");        // as there: the first list
  EXPECT_EQ(pattern("hotspot; seed = 7"), "hotspot:any:314159");  // drawn before the seed is set
  const auto mesh = *parse_network("mesh:8x8");
  Random others(1);
  EXPECT_EQ(Traffic::make("hotspot:any:7", mesh)->target(3, others), Random(7).below(64));
  EXPECT_FALSE(parse_booksim("topology = mesh; traffic = hotspot; classes = 2;", "file"));
  EXPECT_EQ(parse_booksim("topology = mesh;\ntraffic = hotspot({{1,x}});", "f").error().to_string(),
            "f:2: traffic: found 'hotspot({{1,x}})', expected numbers of nodes and weights up to "
            "1000, hotspot({{3,7},{2,1}})");
  EXPECT_EQ(prepare(*parse_booksim("topology = mesh;\ntraffic = hotspot({99});", "f"))
                .error()
                .to_string(),
            "f:2: traffic: found '99', expected a node from 0 to 63");
}

}  // namespace
}  // namespace orrery::flit
