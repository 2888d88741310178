// SPDX-License-Identifier: Apache-2.0
#include "compat/scalesim/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::scalesim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The configuration as SCALE-Sim ships that of its TPU v1: v2's keys, sections, spaces.
constexpr const char* kTpu = R"([general]
run_name = GoogleTPU_v1_ws

[architecture_presets]
ArrayHeight:    256
ArrayWidth:     256
IfmapSramSzkB:    6144
FilterSramSzkB:   6144
OfmapSramSzkB:    2048
IfmapOffset:    0
FilterOffset:   10000000
OfmapOffset:    20000000
Dataflow : ws
Bandwidth : 10
MemoryBanks: 1

[run_presets]
InterfaceBandwidth: CALC
SRAM_row_size: 2
)";
constexpr const char* kConvolutions =
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, "
    "Strides,\r\nConv1     ,224  ,224  ,11 ,11 ,3 ,96 ,4 ,\n\nConv2 ,27 ,27 ,5 ,5 ,96 ,256 ,1 ,\n";

TEST(ScaleSim, ItsOwnFilesAsTheyAre) {
  const auto configuration = parse_configuration(kTpu, "google.cfg");
  ASSERT_TRUE(configuration) << configuration.error().to_string();
  EXPECT_EQ(configuration->run_name, "GoogleTPU_v1_ws");
  EXPECT_EQ(configuration->array.rows, 256);
  EXPECT_EQ(configuration->array.output_sram, 2_MiB);
  EXPECT_EQ(configuration->array.dataflow, compute::Dataflow::weight_stationary);
  EXPECT_FALSE(configuration->feed);
  const auto layers = parse_topology(kConvolutions, "alexnet.csv");
  ASSERT_TRUE(layers) << layers.error().to_string();
  ASSERT_EQ(layers->size(), 2U);
  // (224 - 11) / 4 = 53.25: 54 windows each way fit.
  EXPECT_EQ((*layers)[0].gemm, (graph::GemmShape{1, 54 * 54, 96, 363}));
  // As the tool: 55 windows, and a cycle less. ws: 2 folds of 55^2 + 3 x 256 - 2.
  EXPECT_EQ(report(*configuration, (*layers)[0], Compatibility::scale_sim).cost.cycles,
            2 * (55 * 55 + 3 * 256 - 2) - 1);
  EXPECT_EQ(report(*configuration, (*layers)[0], Compatibility::none).cost.cycles,
            2 * (54 * 54 + 3 * 256 - 2));
}

TEST(ScaleSim, NineColumnsHaveAStrideOfHeightAndOneOfWidth) {
  // What stands after the last comma of a row is no value: the tool drops it.
  const auto layers = parse_topology(
      "Layer name,IFMAP Height,IFMAP Width,Filter Height,Filter Width,Channels,Num Filter,"
      "Strides height,Strides width,\nConv1,224,224,11,11,3,96,4,4, # first\n",
      "nine.csv");
  ASSERT_TRUE(layers) << layers.error().to_string();
  ASSERT_EQ(layers->size(), 1U);
  EXPECT_EQ((*layers)[0].gemm, (graph::GemmShape{1, 54 * 54, 96, 363}));  // as with one stride of 4
}

TEST(ScaleSim, AUniqueElementCrossesMemoryOnceWhereNothingWaits) {
  const auto configuration = parse_configuration(kTpu, "google.cfg");
  const auto layers = parse_topology(kConvolutions, "alexnet.csv");
  const LayerReport conv = report(*configuration, (*layers)[1], Compatibility::none);
  EXPECT_EQ(conv.cost.dram_bytes.input, 27 * 27 * 96);
  EXPECT_EQ(conv.cost.dram_bytes.filter, 5 * 5 * 96 * 256);
}

TEST(ScaleSim, BandwidthOfEachOperandMakesItWait) {
  std::string text = kTpu;
  text.replace(text.find("CALC"), 4, "USER");
  const auto configuration = parse_configuration(text, "google.cfg");
  ASSERT_TRUE(configuration);
  EXPECT_EQ(configuration->feed->filter, 10);
  const auto layers = parse_topology("Layer,M,N,K\nQKT,1024,1024,64\n", "gpt2.csv");
  const auto cost = report(*configuration, layers->front(), Compatibility::none).cost;
  EXPECT_GE(cost.cycles, 1024 * 1024 / 10.0);  // bytes of the longest operand / its rate
  EXPECT_GT(cost.stall_cycles, 0);
}

TEST(ScaleSim, SparsityIsTheTopologysColumn) {
  std::string text = kTpu;
  text += "[sparsity]\nSparsitySupport : true\nSparseRep : ellpack_block\n";
  const auto sparse = parse_configuration(text, "sparse.cfg");
  ASSERT_TRUE(sparse) << sparse.error().to_string();
  const auto layers = parse_topology("Layer,M,N,K,Sparsity,\na,512,256,512,2:4,\n", "t.csv");
  ASSERT_TRUE(layers) << layers.error().to_string();
  // ws: K 512 in 256 rows left, one fold instead of two.
  EXPECT_EQ(report(*sparse, layers->front(), Compatibility::none).cost.cycles, 512 + 768 - 2);
  EXPECT_EQ(
      report(*parse_configuration(kTpu, "x"), layers->front(), Compatibility::none).cost.cycles,
      2 * (512 + 768 - 2));
}

TEST(ScaleSim, EveryMistakeIsNamedWithItsLine) {
  const auto bad = parse_configuration(
      "[general]\nrun_name=a\n[architecture_preset]\nx:1\n[architecture_presets]\nArrayHeigth: 4\n"
      "ArrayWidth: zero\nDataflow: rs\nBandwidth 5\n[run_presets]\nInterfaceBandwidth: MAYBE\n",
      "bad.cfg");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().to_string(),
              AllOf(HasSubstr("bad.cfg:3"), HasSubstr("architecture_presets"),
                    HasSubstr("bad.cfg:6"), HasSubstr("arrayheight"), HasSubstr("bad.cfg:7"),
                    HasSubstr("'zero'"), HasSubstr("os, ws or is"), HasSubstr("bad.cfg:9"),
                    HasSubstr("CALC"), HasSubstr("arrayheight: missing")));
  const auto rows = parse_topology("Layer,M,N,K\na,1,2\nb,0,2,x\n", "bad.csv");
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().to_string(),
              AllOf(HasSubstr("bad.csv:2"), HasSubstr("bad.csv:3: M"), HasSubstr("bad.csv:3: K")));
  const auto strides = parse_topology("Layer,H,W,h,w,C,N,Sh,Sw,\nc,8,8,3,3,1,1,2,1,\n", "s.csv");
  ASSERT_FALSE(strides);
  EXPECT_THAT(strides.error().to_string(), HasSubstr("s.csv:2: Sw: found '1', expected 2"));
  EXPECT_FALSE(parse_topology("a,b\n", "two.csv"));
  EXPECT_FALSE(parse_topology("", "empty.csv"));
  const auto large = parse_topology("Layer,H,W,h,w,C,N,S\nc,4,4,5,5,1,1,1\n", "large.csv");
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().to_string(), HasSubstr("no larger than the input"));
}

}  // namespace
}  // namespace orrery::scalesim
