// SPDX-License-Identifier: Apache-2.0
/// The shipped machines against measured collectives: tests/calibrate/measured/MACHINE.csv. Of
/// ai-dynamo/aiconfigurator@095f58a51c4c (nccl_perf, Apache-2.0), medians over NCCL versions and
/// repeats, fp16 and int8; of microsoft/vidur@7d47513363ec (data/profiling/network, MIT), every
/// eighth row. Machines without tables of their own have no file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "calibrate/collectives.h"

namespace orrery::calibrate {
namespace {

constexpr const char* kMachines[] = {
    "dgx-a100-80g",       "dgx-h100",     "dgx-b200",       "dgx-b300",       "gb200-nvl72",
    "gb300-nvl72",        "rtx-pro-6000", "vidur-a100-dgx", "vidur-h100-dgx", "vidur-a100-pairwise",
    "vidur-a40-pairwise", "l40s-no-peer"};

class MeasuredOn : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<CollectiveMeasurement> measured(const std::string& machine) {
    const auto rows = load_collectives(std::string(ORRERY_SOURCE_DIR) +
                                       "/tests/calibrate/measured/" + machine + ".csv");
    EXPECT_TRUE(rows) << rows.error().to_string();
    return rows.value_or(std::vector<CollectiveMeasurement>());
  }
  static machine::Machine machine_named(const std::string& name) {
    auto machine = machine::load_machine(name);
    EXPECT_TRUE(machine) << machine.error().to_string();
    return machine.value_or(machine::Machine());
  }
};
INSTANTIATE_TEST_SUITE_P(Measured, MeasuredOn, ::testing::ValuesIn(kMachines));

/// Returns the rows from 64 KiB to 1 GiB.
std::vector<CollectiveMeasurement> large(const std::vector<CollectiveMeasurement>& rows) {
  std::vector<CollectiveMeasurement> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [](const auto& row) { return row.bytes >= 64_KiB && row.bytes <= 1_GiB; });
  return found;
}

TEST_P(MeasuredOn, MedianErrorIsAtMost15PercentFrom64KiBTo1GiB) {
  const machine::Machine machine = machine_named(GetParam());
  const auto rows = measured(GetParam());
  const CollectiveError error = collective_error(large(rows), machine);
  EXPECT_LE(error.median, 0.15);
  const CollectiveError all = collective_error(rows, machine);
  std::printf("%-20s %4zu points: median %4.1f %%, mean %4.1f %%; from 64 KiB %4.1f %%, %4.1f %%\n",
              GetParam(), all.points, 100 * all.median, 100 * all.mean, 100 * error.median,
              100 * error.mean);
}

TEST_P(MeasuredOn, EveryCollectiveIsWithin20PercentFrom64KiB) {
  const machine::Machine machine = machine_named(GetParam());
  const auto rows = large(measured(GetParam()));
  for (const Named<graph::CollectiveKind>& kind : kNames<graph::CollectiveKind>) {
    std::vector<CollectiveMeasurement> of_kind;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(of_kind),
                 [&](const auto& row) { return row.kind == kind.value; });
    EXPECT_LE(collective_error(of_kind, machine).median, 0.2) << kind.name;
  }
}

TEST_F(MeasuredOn, MedianErrorOverAllPointsIsAtMost10Percent) {
  std::vector<double> errors;
  for (const char* name : kMachines) {
    const machine::Machine machine = machine_named(name);
    for (const CollectiveMeasurement& row : measured(name)) {
      errors.push_back(collective_error({row}, machine).median);
    }
  }
  ASSERT_GT(errors.size(), 2000U);
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  EXPECT_LE(*middle, 0.10);
  std::printf("all %zu points: median error %.1f %%\n", errors.size(), 100 * *middle);
}

TEST_F(MeasuredOn, MedianErrorBetweenNodesIsAtMost12Percent) {
  std::vector<double> errors;
  for (const char* name :
       {"vidur-a100-dgx", "vidur-h100-dgx", "vidur-a100-pairwise", "vidur-a40-pairwise"}) {
    const machine::Machine machine = machine_named(name);
    for (const CollectiveMeasurement& row : measured(name)) {
      if (row.per_node > 0 && row.per_node < row.members) {
        errors.push_back(collective_error({row}, machine).median);
      }
    }
  }
  ASSERT_GT(errors.size(), 300U);
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  EXPECT_LE(*middle, 0.12);
  std::printf("between nodes %zu points: median error %.1f %%\n", errors.size(), 100 * *middle);
}

TEST_F(MeasuredOn, H200IsAnH100AsFarAsNvlinkGoes) {
  // The same NVSwitch generation: no coefficient of its own.
  const machine::Machine h100 = machine_named("dgx-h100");
  const machine::Machine h200 = machine_named("dgx-h200");
  EXPECT_EQ(h200.network[0].bandwidth, h100.network[0].bandwidth);
  EXPECT_EQ(h200.network[0].protocols, h100.network[0].protocols);
  EXPECT_EQ(h200.network[0].in_switch, h100.network[0].in_switch);
  EXPECT_EQ(h200.network[0].exchange, h100.network[0].exchange);
}

}  // namespace
}  // namespace orrery::calibrate
