// SPDX-License-Identifier: Apache-2.0
/// Slices of pods of TPUs.
#include "machine/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

namespace orrery::machine {
namespace {

Machine pod(const std::string& name) {
  auto machine = load_machine(name);
  EXPECT_TRUE(machine) << machine.error().to_string();
  return machine.value_or(Machine{});
}

std::vector<std::int64_t> extents(const Machine& machine) {
  std::vector<std::int64_t> sizes;
  for (const topology::NetworkDimension& line : machine.network) {
    sizes.push_back(line.size);
  }
  return sizes;
}

TEST(Slices, AJobTakesTheBlockOfCubesThatIsMostCompact) {
  // Google's v5p-128, v5p-512, v5p-1024 and v4-32: 4x4x4, 4x8x8, 8x8x8, 2x2x4 chips.
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(extents(with_devices(pod("tpu-v5p"), 64).value()), (Sizes{4, 4, 4}));
  EXPECT_EQ(extents(with_devices(pod("tpu-v5p"), 256).value()), (Sizes{4, 8, 8}));
  EXPECT_EQ(extents(with_devices(pod("tpu-v5p"), 512).value()), (Sizes{8, 8, 8}));
  EXPECT_EQ(extents(with_devices(pod("tpu-v4"), 16).value()), (Sizes{2, 2, 4}));
  EXPECT_EQ(extents(with_devices(pod("tpu-v6e"), 128).value()), (Sizes{8, 16}));
}

TEST(Slices, SwitchesCloseTheAxesOfCubesAndOtherAxesAreClosedAtTheirFullLengthAlone) {
  for (const topology::NetworkDimension& line : with_devices(pod("tpu-v5p"), 256).value().network) {
    EXPECT_EQ(line.kind, topology::DimensionKind::ring) << line.name;
  }
  const Machine flat = with_devices(pod("tpu-v6e"), 128).value();
  EXPECT_EQ(flat.network[0].kind, topology::DimensionKind::mesh);
  EXPECT_EQ(flat.network[1].kind, topology::DimensionKind::ring);
}

TEST(Slices, AreNamedByExtentsOrAsGoogleDoes) {
  // v5p-512 counts cores, two a chip; v6e-64 chips.
  const auto named = with_slice(pod("tpu-v5p"), "v5p-512");
  ASSERT_TRUE(named) << named.error().to_string();
  EXPECT_EQ(named->devices, 256);
  EXPECT_EQ(named->text, "4x8x8, 256 chips, v5p-512");
  EXPECT_EQ(with_slice(pod("tpu-v5p"), "8x8x4").value().text, named->text);
  EXPECT_EQ(with_slice(pod("tpu-v6e"), "v6e-64").value().text, "8x8, 64 chips, v6e-64");
  // A job of as many keeps the slice's lines as they are, and needs no network beside them.
  const Machine cut = with_devices(named->machine, named->devices).value();
  EXPECT_EQ(extents(cut), (std::vector<std::int64_t>{4, 8, 8}));
  ASSERT_GE(named->machine.network.size(), cut.network.size());
  EXPECT_TRUE(std::ranges::equal(cut.network, std::span(named->machine.network).first(3)));
}

TEST(Slices, WhatIsNoneIsRefused) {
  EXPECT_FALSE(with_slice(pod("dgx-h100"), "2x2x2"));
  for (const char* text : {"", "4x", "0x4", "32x32x32", "v5e-256", "v5p-", "v5p-511", "4x4x4x4"}) {
    EXPECT_FALSE(with_slice(pod("tpu-v5p"), text)) << text;
  }
}

}  // namespace
}  // namespace orrery::machine
