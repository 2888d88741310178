// SPDX-License-Identifier: Apache-2.0
/// All-reduce kernels of serving engines on shipped machines against measured ones:
/// tests/calibrate/measured/MACHINE.ALGORITHM.csv, of ai-dynamo/aiconfigurator@095f58a51c4c (custom
/// all-reduce tables, Apache-2.0), medians over versions of vLLM and TensorRT-LLM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/collectives.h"

namespace orrery::calibrate {
namespace {

using collective::CollectiveAlgorithm;
using MachineAndAlgorithm = std::pair<const char*, CollectiveAlgorithm>;

std::vector<MachineAndAlgorithm> all() {
  std::vector<MachineAndAlgorithm> pairs;
  for (const char* machine :
       {"dgx-a100-80g", "dgx-h100", "dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72"}) {
    for (const CollectiveAlgorithm algorithm :
         {CollectiveAlgorithm::custom, CollectiveAlgorithm::custom_eager,
          CollectiveAlgorithm::custom_trtllm}) {
      pairs.emplace_back(machine, algorithm);
    }
  }
  return pairs;
}

class CustomOn : public ::testing::TestWithParam<MachineAndAlgorithm> {
 protected:
  void SetUp() override {
    const std::string name(GetParam().first);
    auto machine = machine::load_machine(name);
    ASSERT_TRUE(machine) << machine.error().to_string();
    machine_ = std::move(*machine);
    auto rows = load_collectives(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/measured/" +
                                 name + "." + std::string(name_of(GetParam().second)) + ".csv");
    ASSERT_TRUE(rows) << rows.error().to_string();
    rows_ = std::move(*rows);
  }
  double seconds(const CollectiveMeasurement& row, CollectiveAlgorithm algorithm) const {
    return to_seconds(collective::collective_time(row.kind, row.bytes, group_of(row, machine_),
                                                  algorithm, machine_));
  }
  double median_error(CollectiveAlgorithm algorithm, Bytes below) const {
    std::vector<double> errors;
    for (const CollectiveMeasurement& row : rows_) {
      if (row.bytes < below) {
        errors.push_back(std::abs(seconds(row, algorithm) / to_seconds(row.time) - 1));
      }
    }
    const auto middle = errors.begin() + std::ssize(errors) / 2;
    std::nth_element(errors.begin(), middle, errors.end());
    return *middle;
  }

  machine::Machine machine_;
  std::vector<CollectiveMeasurement> rows_;
};
INSTANTIATE_TEST_SUITE_P(Measured, CustomOn, ::testing::ValuesIn(all()), [](const auto& instance) {
  std::string name =
      std::string(instance.param.first) + "_" + std::string(name_of(instance.param.second));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(CustomOn, MedianErrorIsAtMost15Percent) {
  const CollectiveAlgorithm algorithm = GetParam().second;
  ASSERT_GE(rows_.size(), 24U);
  const double every = median_error(algorithm, 2_GiB);
  const double small = median_error(algorithm, 1_MiB);
  std::printf("%-14s %-14s median %4.1f %%, below 1 MiB %4.1f %%; auto %4.1f %%, %5.1f %%\n",
              GetParam().first, std::string(name_of(algorithm)).c_str(), 100 * every, 100 * small,
              100 * median_error(CollectiveAlgorithm::automatic, 2_GiB),
              100 * median_error(CollectiveAlgorithm::automatic, 1_MiB));
  EXPECT_LE(every, 0.15);
  EXPECT_LE(small, 0.15);
}

TEST_P(CustomOn, MoreBytesTakeLongerAndNoFewerThanTheirTimeOnTheLinks) {
  // A member receives at least 2(p-1)/p S, what the switch adds up S.
  const double bandwidth = machine_.network[0].bandwidth.value();
  double before = 0;
  for (const CollectiveMeasurement& row : rows_) {
    const double time = seconds(row, GetParam().second);
    EXPECT_GE(time, static_cast<double>(row.bytes.value()) / bandwidth);
    EXPECT_GE(time, row.bytes == 256_B ? 0 : before);  // sizes ascend within a group
    before = time;
  }
}

}  // namespace
}  // namespace orrery::calibrate
