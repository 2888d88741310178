// SPDX-License-Identifier: Apache-2.0
/// Fused attention in tiles (compute_model.h).
#include <gtest/gtest.h>

#include <cmath>

#include "causal_attention.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/packed_heads.h"

namespace orrery::compute {
namespace {

/// Units, peak and bandwidth of an A100, with tiles of 128 queries at half of peak.
Device with_tiles() {
  Device device;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = 312_TFLOPs;
  device.units = 108;
  device.memory = {{"hbm", 80_GiB, Bandwidth(2039e9), Time(0)}};
  device.kernels.attention_tile = 128;
  device.kernels.attention_share = 0.5;
  device.kernels.attention_backward_share = 0.25;
  device.kernels.attention_launch = 0_ps;
  return device;
}

TEST(AttentionModel, AttentionComputesTheWholeSquaresOnItsDiagonal) {
  // 1024 queries: 8 tiles of 128. A query sees 512 keys on average, its tile 512 + 64 = 576: 9/8 of
  // the FLOPs. 1080 heads: 80 tiles for each of 108 units; half of 312 TFLOP/s.
  const graph::Operator op = causal_attention(1080, 1024, 128);
  const double busy = op.flops.value() * 1.125 / 156e12;
  EXPECT_NEAR(to_seconds(kernel_time(op, with_tiles()).alone), busy, 1e-4 * busy);
  graph::Operator backward = op;
  backward.backward = true;
  backward.flops = 2.5 * op.flops;
  EXPECT_NEAR(to_seconds(kernel_time(backward, with_tiles()).alone), 5 * busy, 5e-4 * busy);
}

TEST(AttentionModel, AFewTilesOfAttentionTakeAsLongAsTheLongest) {
  // One head of 1024 queries: 8 tiles for 108 units. The last sees all 1024 keys: 128 x 1024 x 4 x
  // 128 FLOP at a unit's half of 312 / 108 TFLOP/s.
  const double longest = 128.0 * 1024 * 4 * 128 / (156e12 / 108);
  EXPECT_NEAR(to_seconds(kernel_time(causal_attention(1, 1024, 128), with_tiles()).alone), longest,
              1e-4 * longest);
}

TEST(AttentionModel, ExponentialsBesideTheProductsLimitNarrowHeads) {
  // 4 x 64 = 256 FLOPs of a pair against exponentials of 256 FLOP-equivalents: 2^(1/4) as long;
  // against heads of 128, 512 FLOPs: (1 + 1/16)^(1/4).
  Device device = with_tiles();
  const auto slower = [&](std::int64_t width) {
    const graph::Operator op = causal_attention(1080, 1024, width);
    device.kernels.attention_softmax = 0;
    const Time without = kernel_time(op, device).alone;
    device.kernels.attention_softmax = 256;
    return kernel_time(op, device).alone / without;
  };
  EXPECT_NEAR(slower(64), std::pow(2, 0.25), 1e-3);
  EXPECT_NEAR(slower(128), std::pow(1.0625, 0.25), 1e-3);
}

TEST(AttentionModel, AttentionTilesHaveARampATailAndTrafficOfTheirOwn) {
  // Ramp: 576 keys become 576 + 64. Tail: half of the longest tile, 1024 keys. Traffic: queries and
  // output, 2 x 2 bytes x 1080 x 1024 x 128, once.
  const graph::Operator op = causal_attention(1080, 1024, 128);
  const double key = 128.0 * 4 * 128 / (156e12 / 108);
  const auto time = [&](double ramp, double tail, double traffic) {
    Device device = with_tiles();
    device.kernels.attention_key_ramp = ramp;
    device.kernels.attention_tail = tail;
    device.kernels.attention_traffic = traffic;
    return to_seconds(kernel_time(op, device).alone);
  };
  const double plain = time(0, 0, 0);
  EXPECT_NEAR(time(64, 0, 0) - plain, 80 * 64 * key, 1e-8);
  EXPECT_NEAR(time(0, 0.5, 0) - plain, 512 * key, 1e-8);
  EXPECT_NEAR(time(0, 0, 1) - plain, 4.0 * 1080 * 1024 * 128 / 2.039e12, 1e-8);
}

TEST(AttentionModel, AttentionComputesWholeTilesOfKeys) {
  // 16,384 elements of keys: 256 keys of 64, 128 of 128, 64 (of 85) of 192. Tiles of 128 queries
  // see 512 keys of 1024 and mask half of the longer side: 128, 64, 64. A window of 128 has two
  // edges: 120 keys visible and 256 or 128 masked.
  Device device = with_tiles();
  const auto keys = [&](graph::Operator op) {
    const auto time = [&](double elements) {
      device.kernels.attention_key_elements = elements;
      return kernel_time(op, device).alone;
    };
    return time(16384) / time(0);
  };
  EXPECT_NEAR(keys(causal_attention(1080, 1024, 64)), (512 + 128.0) / (512 + 64), 1e-4);
  EXPECT_NEAR(keys(causal_attention(1080, 1024, 128)), 1, 1e-4);
  EXPECT_NEAR(keys(causal_attention(1080, 1024, 192)), 1, 1e-4);
  graph::Operator window = causal_attention(1080, 1024, 64);
  window.flops = window.flops * (120.0 / 512);
  window.bytes = 0_B;
  EXPECT_NEAR(keys(window), (120 + 256.0) / (120 + 128), 1e-4);
}

TEST(AttentionModel, PromptsOfTensorRtFillTheTileOfAFewQueries) {
  // 108 heads of one query: a tile of 128 instead of 16 queries, of one key: eight times the
  // products, all in one wave. With keys before the query it is decoding, and split as ever.
  Device device = with_tiles();
  graph::Operator op = causal_attention(108, 1, 128);
  op.flops = Flops(4.0 * 108 * 128);
  op.bytes = 0_B;
  const Time small = kernel_time(op, device).alone;
  op.library = graph::AttentionLibrary::trtllm;
  EXPECT_NEAR(kernel_time(op, device).alone / small, 8, 0.01);
  op.gemm.n = 1024;
  op.flops = Flops(4.0 * 108 * 128 * 1024);
  const Time decoding = kernel_time(op, device).alone;
  op.library = graph::AttentionLibrary::any;
  EXPECT_EQ(decoding, kernel_time(op, device).alone);
}

TEST(AttentionModel, KernelsOfSteppedHeadsComputeTheNextWidth) {
  // 96 elements in steps of 64 are 128: 4/3 of the products. 64 and 128 are as they were.
  Device device = with_tiles();
  const auto wider = [&](std::int64_t width) {
    const graph::Operator op = causal_attention(1080, 1024, width);
    device.kernels.attention_head_step = 0;
    const Time without = kernel_time(op, device).alone;
    device.kernels.attention_head_step = 64;
    return kernel_time(op, device).alone / without;
  };
  EXPECT_NEAR(wider(96), 4.0 / 3, 1e-6);
  EXPECT_NEAR(wider(128), 1, 1e-9);
}

TEST(AttentionModel, TilesOfOneLengthWaitForTheLastWave) {
  // 135 heads of 128 queries that see all 128 keys: 1.25 waves, a quantised one of which is 2. The
  // tail, half a tile more without, is that same wait. Causal tiles differ and keep theirs.
  Device device = with_tiles();
  graph::Operator op = causal_attention(135, 128, 128);
  op.flops = 2 * op.flops;
  op.bytes = 0_B;
  device.kernels.attention_tail = 0.5;
  const double tile = 128.0 * 128 * 4 * 128 / (156e12 / 108);
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 1.75 * tile, 1e-3 * tile);
  device.kernels.attention_wave_quantisation = 1;
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 2 * tile, 1e-3 * tile);
  const graph::Operator causal = causal_attention(135, 1024, 128);
  const Time quantised = kernel_time(causal, device).alone;
  device.kernels.attention_wave_quantisation = 0;
  EXPECT_EQ(kernel_time(causal, device).alone, quantised);
}

TEST(AttentionModel, FlashAttention2SplitsDecodesBelowSixteenTenthsOfATileAUnit) {
  // 108 units: 172 tiles are 1.59 a unit and read 4 KB a key at the bandwidth; 173 are computed as
  // two waves of tiles of 128 queries, 8,192 keys each, whatever their bytes.
  Device device = with_tiles();
  device.kernels.attention_wave_quantisation = 1;
  const auto decode = [&](std::int64_t tiles) {
    graph::Operator op;
    op.kind = graph::OperatorKind::attention;
    op.library = graph::AttentionLibrary::flash2;
    op.gemm = {.batch = tiles, .m = 4, .n = 8192, .k = 128};
    op.flops = Flops(4.0 * 4 * static_cast<double>(tiles) * 8192 * 128);
    op.bytes = Bytes(4 * tiles * 8192 * 128);
    return to_seconds(kernel_time(op, device).alone);
  };
  const double bandwidth = 2039e9 * device.kernels.elementwise_share;
  EXPECT_NEAR(decode(172), 4.0 * 172 * 8192 * 128 / bandwidth, 1e-9);
  const double tile = 128.0 * 8192 * 4 * 128 / (156e12 / 108);
  EXPECT_NEAR(decode(173), 2 * tile, 1e-3 * tile);
  EXPECT_NEAR(decode(216), 2 * tile, 1e-3 * tile);
  EXPECT_NEAR(decode(217), 3 * tile, 1e-3 * tile);
}

TEST(AttentionModel, LibrariesHaveSetsOfTheirOwnForwardAndBackward) {
  // Each set starts a kernel another 1, 2, 4 ... us later. Other operators' backward has none.
  Device device = with_tiles();
  Time later = 1_us;
  for (const char* set :
       {"attention_cudnn", "attention_backward", "attention_flash2", "attention_flash2_backward"}) {
    (device.format_kernels[set] = device.kernels).attention_launch += later;
    later = 2 * later;
  }
  const auto start = [&](graph::AttentionLibrary library, bool backward) {
    graph::Operator op = causal_attention(108, 1024, 128);
    op.backward = backward;
    op.library = library;
    return kernel_time(op, device).alone - kernel_time(op, with_tiles()).alone;
  };
  using Library = graph::AttentionLibrary;
  EXPECT_EQ(start(Library::any, false), 0_us);
  EXPECT_EQ(start(Library::any, true), 2_us);
  EXPECT_EQ(start(Library::cudnn, false), 1_us);
  EXPECT_EQ(start(Library::cudnn, true), 2_us);
  EXPECT_EQ(start(Library::flash2, false), 4_us);
  EXPECT_EQ(start(Library::flash2, true), 8_us);
  const graph::Operator add{.name = {}, .bytes = 1'000'000_B, .backward = true};
  EXPECT_EQ(kernel_time(add, device).alone, kernel_time(add, with_tiles()).alone);
}

TEST(AttentionModel, FewQueriesHaveCoefficientsOfTheirOwnWhereTheDeviceSaysSo) {
  // Half of the bandwidth: twice the time. From 16 queries on as before.
  Device device = with_tiles();
  graph::Operator op = causal_attention(1080, 1, 128);
  op.bytes = 1'500'000'000_B;
  const Time whole = kernel_time(op, device).alone;
  (device.format_kernels["decode"] = device.kernels).elementwise_share /= 2;
  EXPECT_NEAR(kernel_time(op, device).alone / whole, 2, 1e-8);  // picoseconds
  op.gemm.m = 16;
  EXPECT_EQ(kernel_time(op, device).alone, whole);
}

TEST(AttentionModel, EverySequencesHeadOfKeysStartsAUnitAnew) {
  // 2,160 heads of keys: 20 starts of 4 us on each of 108 units, 80 us without bytes; half as many
  // heads, half of that. Bytes that alone take as long: 2^(1/3) times; 1 MB is hidden (0.6 us), and
  // 10 GB hide the starts. 16 queries are a prompt and have none.
  Device device = with_tiles();
  auto& peak = device.peak[static_cast<std::size_t>(graph::DataType::bf16)];
  peak = peak * 1000;  // products take no time
  device.kernels.attention_start = 4_us;
  graph::Operator op = causal_attention(2160, 8, 128);
  op.gemm.n = 64;
  op.flops = Flops(1);
  op.bytes = 0_B;
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 80e-6, 1e-10);
  op.key_heads = 1080;  // one head of keys for every two tiles
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 40e-6, 1e-10);
  op.bytes = Bytes(static_cast<std::int64_t>(40e-6 * 2.039e12 * 0.8));
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 40e-6 * std::cbrt(2.0), 1e-10);
  op.bytes = Bytes(1'000'000);
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 40e-6, 1e-10);
  op.bytes = Bytes(10'000'000'000);
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 1e10 / (2.039e12 * 0.8), 1e-9);
  op.gemm.m = 16;
  op.bytes = Bytes(1'000'000);
  EXPECT_LT(kernel_time(op, device).alone, 2_us);
}

TEST(AttentionModel, KeysOfOneHeadTakeAShareOfTheBandwidth) {
  // 1 GB of one head at a tenth of 2,039 GB/s; three heads take three, nine no more than the
  // kernel's 0.8. 16 queries are a prompt.
  Device device = with_tiles();
  device.kernels.attention_head_share = 0.1;
  graph::Operator op = causal_attention(1, 1, 128);
  op.gemm.n = 1'000'000;
  op.flops = Flops(1);
  op.bytes = Bytes(1'000'000'000);
  for (const auto& [heads, share] : {std::pair{1, 0.1}, {3, 0.3}, {9, 0.8}}) {
    op.key_heads = heads;
    EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 1e9 / (2.039e12 * share), 1e-9);
  }
  op.key_heads = 1;
  op.gemm.m = 16;
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 1e9 / (2.039e12 * 0.8), 1e-9);
}

TEST(AttentionModel, PromptsThatFitTheLastLevelCacheReadIt) {
  // 1000 heads of 16 tokens and 256 elements: 32.8 MB, bound by memory. Three times the bandwidth
  // in the cache, a third of the time; not when it is too small, nor backward, nor with a context.
  Device device = with_tiles();
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = 3120_TFLOPs;
  device.kernels.last_level_speedup = 3;
  graph::Operator op = causal_attention(1000, 16, 256);
  const Time memory = kernel_time(op, device).alone;
  EXPECT_NEAR(to_seconds(memory), 1000.0 * 16 * 256 * 8 / (2.039e12 * 0.8), 1e-9);
  device.last_level_cache = Bytes(40'000'000);
  EXPECT_NEAR(memory / kernel_time(op, device).alone, 3, 1e-6);
  graph::Operator backward = op;
  backward.backward = true;
  EXPECT_EQ(kernel_time(backward, device).alone, memory);
  graph::Operator context = op;
  context.gemm.n = 17;
  EXPECT_EQ(kernel_time(context, device).alone, memory);
  device.last_level_cache = Bytes(30'000'000);
  EXPECT_EQ(kernel_time(op, device).alone, memory);
  // So does the write of 20 MB of keys and values to a paged cache, at a share of 0.35.
  graph::Operator write;
  write.kind = graph::OperatorKind::cache_write;
  write.bytes = Bytes(20'000'000);
  device.kernels.stream_launch = Time(0);
  EXPECT_NEAR(to_seconds(kernel_time(write, device).alone), 2e7 / (3 * 2.039e12 * 0.35), 1e-11);
}

TEST(AttentionModel, HeadsThatShareKeysFillATileOfFewQueries) {
  // One query each: all of up to 15; 8 of 16 and of 32, 10 of 20, which divide them. Four queries
  // of 8 heads: 2 heads, as 4 would be 16 rows. 16 queries: a tile of each head.
  EXPECT_EQ(packed_heads(1, 1), 1);
  EXPECT_EQ(packed_heads(15, 1), 15);
  EXPECT_EQ(packed_heads(16, 1), 8);
  EXPECT_EQ(packed_heads(20, 1), 10);
  EXPECT_EQ(packed_heads(32, 1), 8);
  EXPECT_EQ(packed_heads(8, 4), 2);
  EXPECT_EQ(packed_heads(8, 16), 1);
}

}  // namespace
}  // namespace orrery::compute
