// SPDX-License-Identifier: Apache-2.0
// examples/astra_case_study_3 as its README says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

struct Row {
  double step = 0;
  double exposed = 0;
  double faster = 0;
  double less_exposed = 0;
};

/// Returns the rows by name (34 characters) and tokens.
std::map<std::pair<std::string, int>, Row> case_study_rows_of(const std::string& text) {
  std::map<std::pair<std::string, int>, Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.size() > 34 ? line.substr(34) : "");
    int tokens = 0;
    Row row;
    if (words >> tokens >> row.step >> row.exposed >> row.faster >> row.less_exposed) {
      const std::size_t end = line.find_last_not_of(' ', 33);
      rows[{line.substr(0, end + 1), tokens}] = row;
    }
  }
  return rows;
}

/// The example runs once for all.
class AstraCaseStudy3 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Folder folder;
    const std::string out = folder / "out";
    const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                                "/examples/astra_case_study_3/run.sh " + (folder / "") + " >" + out;
    ASSERT_EQ(std::system(command.c_str()), 0);
    rows = case_study_rows_of(content(out));
    chart = content(folder / "speedup.svg");
    ASSERT_EQ(rows.size(), 21U);
  }

  static inline std::map<std::pair<std::string, int>, Row> rows;
  static inline std::string chart;
};

TEST_F(AstraCaseStudy3, ThePoolsBaselineIsNearZeroInfinityAndItsOptimumFarFromIt) {
  for (const int tokens : {256, 512, 1024, 2048, 4096}) {
    const Row baseline = rows[{"HierMem (baseline)", tokens}];
    const Row opt = rows[{"HierMem (opt)", tokens}];
    EXPECT_NEAR(baseline.faster, 1, 0.16) << tokens;
    // Published: 4.6 in exposed time. No link of the optimum is more than 5 times faster; what a
    // GPU computes meanwhile can hide more than that of it. ZeRO-Infinity's token exchange shares
    // its two switches with gathers by what each wants of them, so it is exposed less than it would
    // be if every transfer took half of a switch: 3.2 to 5.1 times less exposed in the optimum.
    EXPECT_GT(opt.less_exposed, 3.1) << tokens;
    EXPECT_LT(opt.less_exposed, 6) << tokens;
    // Of the step 1.59 times and more: rows of tokens move at 0.4 of the memory's bandwidth, as
    // kernel tables of experts say (1.6 when they moved as fast as other streaming kernels).
    EXPECT_GT(opt.faster, 1.55) << tokens;
    EXPECT_LT(opt.faster, 5) << tokens;
  }
  const double many = rows[{"HierMem (opt)", 4096}].faster;
  EXPECT_LT(many, (rows[{"HierMem (opt)", 1024}].faster));
}

TEST_F(AstraCaseStudy3, NeitherLinkAloneIsTheOptimum) {
  const double groups = rows[{"500 GB/s per memory group", 1024}].faster;
  const double fabric = rows[{"512 GB/s in-node fabric", 1024}].faster;
  const double all = rows[{"all three: HierMem (opt)", 1024}].faster;
  EXPECT_GT(groups, fabric);
  EXPECT_GT(fabric, 1);
  EXPECT_GT(all, 1.3 * groups);
  EXPECT_LT((rows[{"gathers on the network", 1024}].faster), 1.05);  // gains nothing
}

TEST_F(AstraCaseStudy3, TheChartHasALinePerSystemAndMeasure) {
  EXPECT_THAT(chart, HasSubstr("HierMem (opt), exposed"));
  std::size_t lines = 0;
  for (auto at = chart.find("<polyline"); at != std::string::npos;
       at = chart.find("<polyline", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 4U);
}

}  // namespace
}  // namespace orrery::testing
