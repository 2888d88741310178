// SPDX-License-Identifier: Apache-2.0
/// PCPP and DistriFusion: bytes by hand, laws, published speed-ups beside the model.
#include "serving/patches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace orrery::serving {
namespace {

PatchRun run_of(PatchQuery query) {
  return patch_parallel(machine::load_machine("dgx-a100-80g").value(), query).value();
}

PatchQuery query_of(std::int64_t resolution, std::int64_t patches) {
  PatchQuery query;
  query.resolution = resolution;
  query.devices = patches;
  query.split_guidance = false;
  return query;
}

double megabytes(Bytes bytes) {
  return static_cast<double>(bytes.value()) / 1e6;
}

/// MB per device, step and branch (derived by hand from SDXL's layers).
struct Volumes {
  std::int64_t resolution;
  std::int64_t patches;
  std::array<double, 4> mb;
};
constexpr std::array<Volumes, 7> kVolumes{{{1024, 2, {215, 215, 68, 68}},
                                           {1024, 4, {331, 174, 64, 56}},
                                           {1024, 8, {406, 131, 67, 37}},
                                           {2048, 4, {1292, 663, 222, 205}},
                                           {2048, 8, {1546, 445, 188, 130}},
                                           {3840, 4, {4486, 2275, 726, 695}},
                                           {3840, 8, {5307, 1437, 533, 424}}}};

TEST(Patches, VolumesAreThoseOfTheLayers) {
  for (const Volumes& volumes : kVolumes) {
    const PatchRun run = run_of(query_of(volumes.resolution, volumes.patches));
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(megabytes(run.rows[i].received), volumes.mb[i], 0.6)
          << volumes.resolution << " " << volumes.patches << " " << name_of(run.rows[i].scheme);
    }
  }
  // 8 patches: 0.094 and 0.018 TFLOP at 1024, 18.6 and 3.5 at 3840.
  const PatchRun small = run_of(query_of(1024, 8));
  EXPECT_NEAR(small.rows[0].score_tflop, 0.094, 0.0005);
  EXPECT_NEAR(small.rows[1].score_tflop, 0.018, 0.0005);
  const PatchRun large = run_of(query_of(3840, 8));
  EXPECT_NEAR(large.rows[0].score_tflop, 18.6, 0.05);
  EXPECT_NEAR(large.rows[1].score_tflop, 3.54, 0.01);
}

TEST(Patches, TwoPatchesSaveNothingAndKeysAndValuesFallAsTwoOverN) {
  EXPECT_EQ(run_of(query_of(1024, 2)).rows[1].saved, 0);
  for (const std::int64_t n : {2, 4, 8}) {
    const PatchRun run = run_of(query_of(2048, n));
    EXPECT_NEAR(run.rows[1].keys_values / run.rows[0].keys_values, 2.0 / static_cast<double>(n),
                1e-6);
  }
  // Published: about 70 % less; 8 patches of one branch save 68 to 73 %, 4 of each of two 47 to 49.
  EXPECT_NEAR(run_of(query_of(3840, 8)).rows[1].saved, 0.73, 0.005);
  PatchQuery split = query_of(3840, 8);
  split.split_guidance = true;
  EXPECT_EQ(run_of(split).patches, 4);
  EXPECT_NEAR(run_of(split).rows[1].saved, 0.49, 0.005);
}

TEST(Patches, SpeedupsStayBelowThatOfComputeAndOneDeviceIsOne) {
  PatchQuery one = query_of(1024, 1);
  EXPECT_EQ(run_of(one).rows[0].speedup, 1);
  EXPECT_EQ(run_of(one).rows[0].received, 0_B);
  for (const char* network : {"sdxl", "dit-xl"}) {
    for (const std::int64_t devices : {2, 4, 8}) {
      PatchQuery query = query_of(2048, devices);
      query.network = network;
      query.split_guidance = true;
      for (const PatchRow& row : run_of(query).rows) {
        EXPECT_GT(row.speedup, 1) << network << devices;
        EXPECT_LE(row.speedup, run_of(query).single_image / (row.compute * query.steps));
        EXPECT_GE(row.step, row.compute);
      }
    }
  }
}

TEST(Patches, SpeedupsBesideThePublished) {
  // DistriFusion, SDXL at 3840 x 3840 on 2, 4, 8 A100: 1.8, 3.4, 6.1 (published).
  for (const auto& [devices, published] : {std::pair{2, 1.8}, {4, 3.4}, {8, 6.1}}) {
    PatchQuery query = query_of(3840, devices);
    query.split_guidance = true;
    const PatchRun run = run_of(query);
    fmt::print("{} devices: distrifusion {:.2f}x (published {}), pcpp {:.2f}x, portion {:.2f}x\n",
               devices, run.rows[0].speedup, published, run.rows[1].speedup, run.rows[2].speedup);
    EXPECT_NEAR(run.rows[0].speedup / published, 1, 0.35);
    EXPECT_GE(run.rows[1].speedup, run.rows[0].speedup);
    // 4.3 % that is not divided explains the third of them (derived), and then the others.
    query.serial = 0.043;
    const PatchRun serial = run_of(query);
    fmt::print("  with 4.3 % undivided: {:.2f}x, {:.2f}x\n", serial.rows[0].speedup,
               serial.rows[1].speedup);
    EXPECT_NEAR(serial.rows[0].speedup / published, 1, 0.08);
  }
}

TEST(Patches, MistakesAreAllNamed) {
  PatchQuery query = query_of(1000, 8);
  query.network = "unet";
  query.portion = 2;
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  const auto wrong = patch_parallel(machine, query);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().to_string(), ::testing::AllOf(::testing::HasSubstr("portion"),
                                                          ::testing::HasSubstr("sdxl or dit-xl")));
  EXPECT_THAT(patch_parallel(machine, query_of(1000, 8)).error().to_string(),
              ::testing::HasSubstr("a multiple of 8 n = 64"));
  // Small hosts compute in fp32 alone.
  EXPECT_THAT(patch_parallel(machine::load_machine("home-8").value(), query_of(1024, 8))
                  .error()
                  .to_string(),
              ::testing::HasSubstr("bf16 or fp16"));
}

}  // namespace
}  // namespace orrery::serving
