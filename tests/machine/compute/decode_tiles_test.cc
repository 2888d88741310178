// SPDX-License-Identifier: Apache-2.0
/// Decodes in FlashAttention-2's tiles, by hand.
#include "machine/compute/decode_tiles.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::compute {
namespace {

/// 10 units of 1e12 FLOP/s; heads of 128 elements make 512 FLOPs a pair, tiles of 64 queries and
/// 128 keys: 64 x 512 / 1e12 s = 32.768 ns a key of a tile.
Device ten_units() {
  Device device;
  device.units = 10;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(1e13);
  device.memory = {{.name = "m", .capacity = 1_GiB, .bandwidth = 1000_GBps}};
  device.last_level_cache = Bytes(1'000'000);
  KernelCoefficients tiles;
  tiles.attention_share = 1;
  tiles.attention_tile = 64;
  tiles.attention_key_elements = 128 * 128;
  tiles.attention_key_ramp = 36.5;
  tiles.attention_tail = 0.5;
  tiles.elementwise_share = 1;
  device.format_kernels[std::string(kDecodeTiles)] = tiles;
  return device;
}

/// Returns the tiles of 8 heads, 2 of them with keys and values.
DecodeTiles decodes(std::int64_t sequences, double keys, double longest) {
  return {.sequences = sequences,
          .heads = 8,
          .kv_heads = 2,
          .head_dim = 128,
          .keys = keys,
          .longest = longest,
          .kv_head = Bytes(std::llround(512 * keys))};
}

TEST(DecodeTiles, HeadsAreTilesOfTheirOwnSpreadOverTheUnits) {
  // Five sequences of 100 keys: 40 tiles, 4 a unit, of 100 + 63.5 (half a tile of keys, less half a
  // key) + 36.5 = 200 keys: 4 x 200 x 32.768 ns. The longest has 128 + 36.5 keys, fewer than the
  // mean with its half tile: as long as that.
  const auto times = decode_tiles(decodes(5, 500, 100), ten_units());
  ASSERT_TRUE(times);
  EXPECT_NEAR(to_seconds(times->all), 26.2144e-6, 1e-11);
  EXPECT_NEAR(to_seconds(times->longest), 6.5536e-6, 1e-11);
  EXPECT_EQ(times->uneven, Time(0));
}

TEST(DecodeTiles, TheLongestIsLeftAloneAtTheEnd) {
  // One of the five has 1,000 of 1,400 keys: mean 280 + 63.5 + 36.5 = 380 keys, longest 1,024
  // + 36.5 = 1,060.5; half of the 680.5 keys between them, 11.15 us, is not hidden.
  const auto times = decode_tiles(decodes(5, 1400, 1000), ten_units());
  ASSERT_TRUE(times);
  EXPECT_NEAR(to_seconds(times->all), 4 * 380 * 32.768e-9, 1e-11);
  EXPECT_NEAR(to_seconds(times->longest), 1060.5 * 32.768e-9, 1e-11);
  EXPECT_NEAR(to_seconds(times->uneven), 0.5 * 680.5 * 32.768e-9, 1e-11);
}

TEST(DecodeTiles, OneHeadOfAllSequencesBeyondTheCacheIsReadForEveryHead) {
  // 2,000 keys of a head are 1.024 MB, more than the cache: 2 heads x 4 times, 8.192 MB at 1 TB/s.
  Device device = ten_units();
  device.units = 1000;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(1e16);
  const auto beyond = decode_tiles(decodes(20, 2000, 100), device);
  ASSERT_TRUE(beyond);
  EXPECT_NEAR(to_seconds(beyond->all), 8.192e-6, 1e-11);
  const auto within = decode_tiles(decodes(19, 1900, 100), device);  // 0.973 MB
  ASSERT_TRUE(within);
  EXPECT_LT(within->all, beyond->all / 2);
}

TEST(DecodeTiles, KeysAreCutForTheFewestPartsNearTheBestEfficiency) {
  // Ten units take 20 tiles a wave. 3 sequences x 2 heads: 0.3 s waves, best 1 (s = 10); 0.85 of it
  // has s = 3 (0.9). 16 blocks of 128 keys: 6 blocks a part.
  EXPECT_EQ(keys_of_part(decodes(3, 300, 100), 2048, ten_units()), 6 * 128);
  // 5 sequences: 0.5 s waves, s = 2 fills one. Of 3 blocks two have 2 and 1.
  EXPECT_EQ(keys_of_part(decodes(5, 500, 100), 384, ten_units()), 2 * 128);
  // Of 3 blocks and 0.1 s waves all three are parts of their own; the best is 0.3, s = 2 has 0.2.
  EXPECT_EQ(keys_of_part(decodes(1, 100, 100), 384, ten_units()), 128);
  // 5 blocks, 0.2 s waves: s = 4 (2 blocks) leaves as many as s = 3 and is no choice, s = 5 fills
  // one wave.
  EXPECT_EQ(keys_of_part(decodes(2, 100, 100), 640, ten_units()), 128);
}

TEST(DecodeTiles, KeysAreWholeWhereTilesFillFourFifthsOfTwoAUnit) {
  EXPECT_EQ(keys_of_part(decodes(8, 800, 100), 2048, ten_units()), 2048);  // 16 of 20
  EXPECT_LT(keys_of_part(decodes(7, 700, 100), 2048, ten_units()), 2048);
}

TEST(DecodeTiles, KeysOfWindowsAndOfHeadsThatShareNoneAreWhole) {
  DecodeTiles windowed = decodes(3, 300, 100);
  windowed.windowed = true;
  EXPECT_EQ(keys_of_part(windowed, 2048, ten_units()), 2048);
  DecodeTiles apart = decodes(3, 300, 100);
  apart.heads = apart.kv_heads;
  EXPECT_EQ(keys_of_part(apart, 2048, ten_units()), 2048);
}

TEST(DecodeTiles, ADeviceWithoutThemBalancesDecodesItself) {
  EXPECT_FALSE(decode_tiles(decodes(5, 500, 100), Device()));
}

}  // namespace
}  // namespace orrery::compute
