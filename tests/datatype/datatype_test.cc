// SPDX-License-Identifier: Apache-2.0
#include "datatype/datatype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "datatype/packer.h"

namespace orrery::datatype {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Bytes64 = std::vector<std::int64_t>;

Datatype vector_of(std::int64_t count, std::int64_t length, std::int64_t stride,
                   const Datatype& old) {
  return hvector(count, length, stride * old.bounds.extent, old);
}

const Datatype kByte = named(1, 1);
const Datatype kDouble = named(8, 8);

/// Places of the packed bytes, in order: what a packer must read.
Bytes64 places(const Datatype& type, std::int64_t count = 1) {
  std::vector<std::byte> buffer(256);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = static_cast<std::byte>(i);
  }
  const Packer packer(type, count);
  std::vector<std::byte> packed(static_cast<std::size_t>(packer.bytes()));
  packer.pack(buffer.data(), packed.data());
  Bytes64 read;
  for (const std::byte byte : packed) {
    read.push_back(std::to_integer<std::int64_t>(byte));
  }
  return read;
}

/// Places of 8-byte elements, in units of 8 bytes.
Bytes64 double_places(const Datatype& type, std::int64_t count = 1) {
  Bytes64 read;
  const Bytes64 all = places(type, count);
  for (std::size_t i = 0; i < all.size(); i += 8) {
    read.push_back(all[i] / 8);
  }
  return read;
}

TEST(Datatype, ContiguousDoublesAreOneBlock) {
  const Datatype type = canonical(contiguous(5, contiguous(3, kDouble)));
  EXPECT_THAT(type.streams, IsEmpty());
  EXPECT_THAT(type.blocks, ElementsAre(Block{0, 120}));
  EXPECT_EQ(type.bounds, (Bounds{0, 120}));
}

// Rows of a vector that follow each other without a gap are one stream: 3 x 4 blocks of 8 bytes.
TEST(Datatype, AVectorOfVectorsWithoutAGapIsFlat) {
  const Datatype row = resized({0, 64}, vector_of(4, 1, 2, kDouble));
  const Datatype type = canonical(contiguous(3, row));
  EXPECT_THAT(type.streams, ElementsAre(Stream{16, 12}));
  EXPECT_THAT(type.blocks, ElementsAre(Block{0, 8}));
}

// Equal blocks at equal distances are the vector that they look like.
TEST(Datatype, ARegularListIsAVector) {
  const Bytes64 lengths{2, 2, 2};
  const Bytes64 displacements{8, 40, 72};
  const Datatype type = canonical(*hindexed(lengths, displacements, kDouble));
  EXPECT_THAT(type.streams, ElementsAre(Stream{32, 3}));
  EXPECT_THAT(type.blocks, ElementsAre(Block{8, 16}));
  EXPECT_EQ(type.bounds, (Bounds{8, 80}));
}

// A box of 2 x 2 in 3 x 4 bytes from (1, 1): bytes 5, 6, 9, 10; in Fortran's order the first
// dimension is the dense one: a column of 3, so 1 + 3, 2 + 3, 1 + 6, 2 + 6.
TEST(Datatype, ASubarrayStandsInItsArraysOrder) {
  const std::array sizes{3, 4};
  const std::array subsizes{2, 2};
  const std::array starts{1, 1};
  const Datatype c = subarray(sizes, subsizes, starts, ArrayOrder::c, kByte);
  EXPECT_THAT(places(c), ElementsAre(5, 6, 9, 10));
  EXPECT_EQ(c.bounds, (Bounds{0, 12}));
  const Datatype fortran = subarray(sizes, subsizes, starts, ArrayOrder::fortran, kByte);
  EXPECT_THAT(places(fortran), ElementsAre(4, 5, 7, 8));
}

TEST(Datatype, NegativeStridesGoBackwards) {
  const Datatype type =
      resized({0, 8}, *hindexed(Bytes64{1}, Bytes64{24}, hvector(3, 1, -8, kByte)));
  EXPECT_THAT(places(type), ElementsAre(24, 16, 8));
}

TEST(Datatype, NothingHasNoBytesAndNoBounds) {
  const Datatype none = canonical(hvector(0, 3, 8, kDouble));
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.bounds, (Bounds{0, 0}));
  EXPECT_THAT(places(none, 4), IsEmpty());
}

TEST(Datatype, TooManyIrregularBlocksHaveNoNest) {
  Bytes64 lengths(kMostBlocks + 1, 1);
  Bytes64 displacements(lengths.size());
  std::iota(displacements.begin(), displacements.end(), 0);
  displacements.back() += 5;
  for (std::size_t i = 0; i + 1 < displacements.size(); ++i) {
    displacements[i] *= 2;
  }
  EXPECT_FALSE(hindexed(lengths, displacements, kByte));
}

// Six types that a form which swaps streams, folds the root's extent or drops an offset gets wrong.

// (a) Transpose of 4 x 4 doubles: column by column, rows 4 apart.
TEST(SixCases, ATransposeKeepsItsOrder) {
  const Datatype type = hvector(4, 1, 8, vector_of(4, 1, 4, kDouble));
  EXPECT_THAT(double_places(type),
              ElementsAre(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}

// (b) Two interleaved vectors of bytes 4 apart.
TEST(SixCases, InterleavedVectorsKeepTheirOrder) {
  EXPECT_THAT(places(hvector(2, 1, 1, hvector(2, 1, 4, kByte))), ElementsAre(0, 4, 1, 5));
}

// (c) Blocks of two doubles, 4 bytes apart: bytes 0-15, 4-19, 8-23, 12-27.
TEST(SixCases, OverlappingBlocksArePackedTwice) {
  Bytes64 expected;
  for (std::int64_t block = 0; block < 4; ++block) {
    for (std::int64_t byte = 0; byte < 16; ++byte) {
      expected.push_back(4 * block + byte);
    }
  }
  EXPECT_EQ(places(hvector(4, 2, 4, kDouble)), expected);
}

// (d) Two elements of 1 in 10 doubles from 3: the second begins after the array's 80 bytes.
TEST(SixCases, ASubarrayKeepsTheExtentOfItsArray) {
  const std::array sizes{10};
  const std::array subsizes{1};
  const std::array starts{3};
  const Datatype type = canonical(subarray(sizes, subsizes, starts, ArrayOrder::c, kDouble));
  EXPECT_EQ(type.bounds, (Bounds{0, 80}));
  EXPECT_THAT(double_places(type, 2), ElementsAre(3, 13));
}

// (e) A double and an int take 12 bytes of 16: 4 x 12 = 48 are packed.
TEST(SixCases, APairIsTwoBlocks) {
  const Datatype pair =
      resized({0, 16}, *structure(Bytes64{1, 1}, Bytes64{0, 8}, std::vector{kDouble, named(4, 4)}));
  const Datatype type = vector_of(4, 1, 1, pair);
  EXPECT_EQ(type.size(), 48);
  Bytes64 expected;
  for (std::int64_t byte = 0; byte < 64; ++byte) {
    if (byte % 16 < 12) {
      expected.push_back(byte);
    }
  }
  EXPECT_EQ(places(type), expected);
}

// (f) One plane of a halo: 1 x 4 x 8 bytes in 3 x 5 x 8 from (2, 1, 0): 2 * 40 + 1 * 8 = 88 on.
TEST(SixCases, AOnePlaneFaceKeepsItsOffset) {
  const std::array sizes{3, 5, 8};
  const std::array subsizes{1, 4, 8};
  const std::array starts{2, 1, 0};
  const Datatype type = canonical(subarray(sizes, subsizes, starts, ArrayOrder::c, kByte));
  EXPECT_THAT(type.streams, IsEmpty());
  EXPECT_THAT(type.blocks, ElementsAre(Block{88, 32}));
  EXPECT_EQ(type.bounds, (Bounds{0, 120}));
}

/// Blocks of the 26 regions that a rank sends, of one quantity: `edge` cells along each edge,
/// `radius` of them to a neighbour, in an array with room for what arrives.
std::int64_t halo_blocks(int edge, int radius) {
  const int size = edge + 2 * radius;
  std::int64_t blocks = 0;
  for (int direction = 0; direction < 27; ++direction) {
    const std::array<int, 3> towards{direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1};
    std::array<int, 3> subsizes{};
    std::array<int, 3> starts{};
    for (std::size_t d = 0; d < 3; ++d) {
      subsizes[d] = towards[d] == 0 ? edge : radius;
      starts[d] = towards[d] > 0 ? edge : radius;
    }
    if (direction == 13) {  // the rank itself
      continue;
    }
    const Datatype type =
        canonical(subarray(std::array{size, size, size}, subsizes, starts, ArrayOrder::c, kDouble));
    std::int64_t repeats = 1;
    for (const Stream& stream : type.streams) {
      repeats *= stream.count;
    }
    blocks += repeats * std::ssize(type.blocks);
  }
  return blocks;
}

// A page of keys: 16 tokens of 8 heads of 128 elements of 2 bytes, of which an engine with twice as
// many tensor-parallel ranks gets 4 heads. Heads before tokens, they are one run of 16 KiB of each
// page of 32; tokens before heads, each token's 4 heads are a run of their own, of 1 KiB.
TEST(Datatype, HeadsOfAPageOfKeysAreOneRunWhereTheyComeBeforeTokens) {
  const Datatype element = named(2, 2);
  const auto heads_of_pages = [&](std::array<int, 4> sizes, std::array<int, 4> subsizes) {
    return canonical(subarray(sizes, subsizes, std::array{0, 0, 0, 0}, ArrayOrder::c, element));
  };
  const Datatype heads_first = heads_of_pages({10, 8, 16, 128}, {10, 4, 16, 128});
  EXPECT_THAT(heads_first.streams, ElementsAre(Stream{32768, 10}));
  EXPECT_THAT(heads_first.blocks, ElementsAre(Block{0, 16384}));
  const Datatype tokens_first = heads_of_pages({10, 16, 8, 128}, {10, 16, 4, 128});
  EXPECT_THAT(tokens_first.streams, ElementsAre(Stream{2048, 160}));
  EXPECT_THAT(tokens_first.blocks, ElementsAre(Block{0, 1024}));
}

// Rows of every region are blocks of their own: of n cells and radius r over all directions
// 3 (n + 2r)^2 - n^2, as the own rank's n^2 rows are not sent: 3 x 262^2 - 256^2 = 140,396.
//
// The published 917x (3,072 ranks of Summit) in the model of docs/models/datatypes.md, 8
// quantities: a copy of 10 us a block at both sides against 26 x 8 kernels of 10 us and both passes
// over the bytes at 26 GB/s, and what both wait for, the network: 25 GB/s of a node of 6 ranks.
// Cells of a rank are not known: the factor is 785 of 256 cells and goes to 877.
TEST(Datatype, BlocksOfAHaloGiveThePublishedFactorOfItsExchange) {
  EXPECT_EQ(halo_blocks(256, 3), 140'396);
  EXPECT_EQ(halo_blocks(1, 1), 3 * 9 - 1);
  const auto factor = [](double edge, double blocks) {
    constexpr double kQuantities = 8;
    constexpr double kCopy = 10e-6;
    const double bytes = 8 * kQuantities * (std::pow(edge + 6, 3) - std::pow(edge, 3));
    const double network = bytes / (25e9 / 6);
    return (2 * kQuantities * blocks * kCopy + network) /
           (2 * 26 * kQuantities * kCopy + 2 * bytes / 26e9 + network);
  };
  for (const int edge : {256, 512}) {
    const auto modelled = factor(edge, static_cast<double>(halo_blocks(edge, 3)));
    EXPECT_NEAR(modelled, 917, 0.15 * 917) << edge;
  }
}

}  // namespace
}  // namespace orrery::datatype
