// SPDX-License-Identifier: Apache-2.0
#include "study/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"

namespace orrery::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

compute::Device h100() {
  return machine::load_machine("dgx-h100")->device;
}

TEST(Kernels, AGemmCountsItsProductsAndItsOperandsOnce) {
  const GemmQuery query{.m = 2, .n = 3, .k = 5};
  const auto kernels = kernels_of(query, h100(), "");
  ASSERT_TRUE(kernels);
  const graph::Operator* op = kernels->data();
  EXPECT_EQ(op->flops, Flops(60));                 // 2 x 2 x 3 x 5
  EXPECT_EQ(op->bytes, Bytes(2 * (10 + 15 + 6)));  // 2 bytes each
  GemmQuery fp8 = query;
  fp8.type = "fp8_block";
  EXPECT_EQ(kernels_of(fp8, h100(), "")->front().bytes, Bytes(10 + 15 + 2 * 6));  // writes 16 bits
  EXPECT_TRUE(kernels_of(fp8, h100(), "")->front().block_scaled);
}

TEST(Kernels, CausalAttentionSeesHalfOfTheSquareAndAllKeysBeforeIt) {
  AttentionQuery query{.heads = 8, .head_dim = 64, .queries = 1024, .cache = false};
  // 2 products x 2 FLOP x 1024^2 / 2 pairs x 8 heads x 64.
  EXPECT_EQ(kernels_of(query, h100(), "")->front().flops, Flops(4.0 * 1024 * 512 * 8 * 64));
  query.backward = true;
  EXPECT_EQ(kernels_of(query, h100(), "")->front().flops, Flops(10.0 * 1024 * 512 * 8 * 64));
  query.backward = false;
  query.keys = 4096;  // 3,072 keys before the queries, and half of 1,024
  EXPECT_EQ(kernels_of(query, h100(), "")->front().flops, Flops(4.0 * 1024 * 3584 * 8 * 64));
  query.causal = false;
  EXPECT_EQ(kernels_of(query, h100(), "")->front().flops, Flops(4.0 * 1024 * 4096 * 8 * 64));
}

TEST(Kernels, GroupedHeadsReadFewerKeys) {
  const AttentionQuery query{.batch = 2,
                             .heads = 8,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .queries = 1,
                             .keys = 4096,
                             .cache = false};
  // Queries and output 2 x 8 x 64 each, keys and values 2 x 2 x 4096 x 64 each, 2 bytes; 16 sums.
  EXPECT_EQ(kernels_of(query, h100(), "")->front().bytes,
            Bytes(2 * (2 * 1024 + 2 * 2 * 2 * 4096 * 64) + 4 * 16));
}

TEST(Kernels, TensorRtAttentionHasItsOwnCoefficientsWhereTheDeviceKnowsThem) {
  compute::Device device = h100();
  device.format_kernels.clear();
  AttentionQuery query{.heads = 8, .head_dim = 64, .queries = 1024, .cache = false};
  const auto time = [&] {
    return time_kernels(kernels_of(query, device, "").value(), device).time;
  };
  const Time usual = time();
  query.framework = "trtllm";
  EXPECT_EQ(time(), usual);
  compute::KernelCoefficients slower = device.kernels;
  slower.attention_launch += 5_us;
  device.format_kernels.emplace(compute::attention_set(graph::AttentionLibrary::trtllm, false),
                                slower);
  EXPECT_EQ(time(), usual + 5_us);
  query.framework = "vllm";
  EXPECT_EQ(time(), usual);
  query.framework = "tensorrt";
  EXPECT_THAT(kernels_of(query, device, "").error().to_string(),
              ::testing::HasSubstr(
                  "framework: found 'tensorrt', expected trtllm, vllm, sglang or pytorch"));
}

TEST(Kernels, TablesOfMeasurementsNameTheTypeAsCalibrateReadsIt) {
  const CsvTable table{.file = "gemm.csv",
                       .header = {"dtype", "m", "n", "k"},
                       .rows = {{.line = 2, .cells = {"fp8", "1", "2", "3"}}}};
  EXPECT_EQ(read_queries<GemmQuery>(table).value().front().type, "fp8");
}

TEST(Kernels, ALibraryIsAskedForByName) {
  compute::Device device = h100();
  device.format_kernels.clear();
  (device.format_kernels["attention_cudnn"] = device.kernels).attention_launch += 5_us;
  AttentionQuery query{.heads = 8, .head_dim = 64, .queries = 1024, .cache = false};
  const auto time = [&] {
    return time_kernels(kernels_of(query, device, "").value(), device).time;
  };
  const Time usual = time();
  query.library = graph::AttentionLibrary::cudnn;
  EXPECT_EQ(time(), usual + 5_us);
  query.framework = "pytorch";  // as tools/measure_gpu.py writes
  EXPECT_EQ(time(), usual + 5_us);
  query.library = graph::AttentionLibrary::flash2;  // not known apart
  EXPECT_EQ(time(), usual);
}

TEST(Kernels, AWindowLimitsWhatAQuerySees) {
  // Queries 0 to 1023, window 128: the first 128 see 128^2 / 2, the other 896 see 128 each.
  AttentionQuery query{.heads = 1, .head_dim = 64, .queries = 1024, .window = 128, .cache = false};
  EXPECT_EQ(kernels_of(query, h100(), "")->front().flops, Flops(256.0 * (8192 + 896 * 128)));
  query.keys = 4096;  // all queries see whole windows; of the keys 1,024 + 128 are read
  const auto later = kernels_of(query, h100(), "");
  EXPECT_EQ(later->front().flops, Flops(256.0 * 1024 * 128));
  EXPECT_EQ(later->front().bytes, Bytes(2 * 64 * (2 * 1024 + 2 * 1152) + 4 * 1024));
  query.causal = false;
  EXPECT_FALSE(kernels_of(query, h100(), ""));
}

TEST(Kernels, InferenceWritesKeysAndValuesToACacheFirst) {
  // 2 x 8 heads x 128 elements x 4096 positions x 2 bytes, read and written.
  const AttentionQuery query{.heads = 64, .kv_heads = 8, .head_dim = 128, .queries = 4096};
  const auto kernels = kernels_of(query, h100(), "");
  ASSERT_EQ(kernels->size(), 2U);
  EXPECT_EQ(kernels->front().bytes, Bytes(2 * 2 * 8 * 128 * 4096 * 2));
  EXPECT_EQ(time_kernels(*kernels, h100()).time, time_kernels({kernels->front()}, h100()).time +
                                                     time_kernels({kernels->back()}, h100()).time);
}

TEST(Kernels, ARankHasItsShareOfTheRowsOnItsExperts) {
  // 1024 tokens x 8 of 64 experts, 8 ranks: 1024 rows on 8 experts, 128 each. Two ranks share an
  // expert's 2048 columns: 1024 each, gate and up 2048.
  const MoeQuery query{.num_tokens = 1024,
                       .hidden_size = 4096,
                       .inter_size = 2048,
                       .topk = 8,
                       .num_experts = 64,
                       .moe_tp_size = 2,
                       .moe_ep_size = 8};
  const auto kernels = kernels_of(query, h100(), "");
  ASSERT_EQ(kernels->size(), 5U);
  EXPECT_EQ((*kernels)[0].bytes, Bytes(2 * (1024 + 1024) * 4096));  // read, written
  EXPECT_EQ((*kernels)[1].gemm, (graph::GemmShape{8, 128, 2048, 4096}));
  EXPECT_EQ((*kernels)[2].bytes, Bytes(2 * 1024 * (2048 + 1024)));
  EXPECT_EQ((*kernels)[3].gemm, (graph::GemmShape{8, 128, 4096, 1024}));
  MoeQuery few = query;
  few.num_tokens = 4;  // 4 rows: 4 of the 8 experts have one
  EXPECT_EQ((*kernels_of(few, h100(), ""))[1].gemm, (graph::GemmShape{4, 1, 2048, 4096}));
  MoeQuery bad = query;
  bad.moe_ep_size = 7;
  EXPECT_THAT(kernels_of(bad, h100(), "").error().to_string(), HasSubstr("moe_ep_size: found '7'"));
}

TEST(Kernels, TheGreatestLoadGrowsWithTheRanks) {
  // One rank has all. L = ln(0.8 x 8192) = 8.79, spread (3.39)^1/2 = 1.84; 8 ranks of 128 experts:
  // 1 + 1.84 (2 x 2.08 x 8 / 128)^1/2 = 1.94; 128 ranks: 1 + 1.84 (9.70)^1/2 = 6.74.
  EXPECT_EQ(greatest_load(8192, 128, 1), 1);
  EXPECT_NEAR(greatest_load(8192, 128, 8), 1.94, 0.01);
  EXPECT_NEAR(greatest_load(8192, 128, 128), 6.74, 0.01);
  EXPECT_LE(greatest_load(8192, 2, 2), 2);
}

TEST(Kernels, TheTimeIsTheComputeModels) {
  const auto op = kernels_of(GemmQuery{.m = 4096, .n = 4096, .k = 4096}, h100(), "");
  const KernelRow row = time_kernels(*op, h100());
  EXPECT_EQ(row.bound, Bound::compute);
  EXPECT_NEAR(row.flops_per_s * to_seconds(row.time), op->front().flops.value(), 1);
  EXPECT_LT(row.flops_per_s, 989.5e12);
}

TEST(Kernels, EveryMistakeOfAQueryIsNamed) {
  const auto op = kernels_of(GemmQuery{.type = "nvfp4", .m = 0, .n = 1, .k = -1}, h100(), "x:2");
  ASSERT_FALSE(op);
  EXPECT_THAT(op.error().to_string(),
              AllOf(HasSubstr("x:2: type: found 'nvfp4'"), HasSubstr("x:2: m: found '0'"),
                    HasSubstr("x:2: k: found '-1'")));
  const auto keys =
      kernels_of(AttentionQuery{.heads = 8, .kv_heads = 3, .head_dim = 64, .queries = 8, .keys = 4},
                 h100(), "");
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().to_string(),
              AllOf(HasSubstr("kv_heads: found '3'"), HasSubstr("keys: found '4'")));
}

TEST(Kernels, RowsOfAFileAreReadByTheNamesOfTheirColumns) {
  const auto table = parse_csv("k,n,m,type\n5,3,2,fp8\n", "rows.csv");
  const auto queries = read_queries<GemmQuery>(*table);
  ASSERT_TRUE(queries) << queries.error().to_string();
  EXPECT_EQ(queries->front().m, 2);
  EXPECT_EQ(queries->front().type, "fp8");
  const auto typo = read_queries<GemmQuery>(*parse_csv("k,n,m,typ\n5,3,2,fp8\n", "rows.csv"));
  ASSERT_FALSE(typo);
  EXPECT_THAT(typo.error().to_string(), HasSubstr("did you mean 'type'"));
  const auto bad = read_queries<GemmQuery>(*parse_csv("m,n\n2,three\n", "rows.csv"));
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().to_string(),
              AllOf(HasSubstr("column 'k' is missing"), HasSubstr("rows.csv:2: n: found 'three'")));
}

}  // namespace
}  // namespace orrery::study
