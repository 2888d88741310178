// SPDX-License-Identifier: Apache-2.0
// examples/astra_case_study_1 and 2 as their READMEs say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

/// Lines of the example by their first column (`width` characters) and number of occurrence:
/// "Conv-3D", then "Conv-3D 2". The numbers are those of the last `count` columns.
std::map<std::string, std::vector<double>> rows_of(const std::string& example, std::size_t width,
                                                   std::size_t count, const std::string& chart) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/" + example + "/run.sh " + (folder / ".") + " >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << example;
  EXPECT_THAT(content(folder / chart), HasSubstr("<svg"));
  std::map<std::string, std::vector<double>> rows;
  std::istringstream lines(content(out));
  for (std::string line; std::getline(lines, line);) {
    std::string name = line.substr(0, width);
    name.erase(name.find_last_not_of(' ') + 1);
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) {
      columns.push_back(word);
    }
    const auto number = [](const std::string& word) {
      return word.find_first_not_of("0123456789.") == std::string::npos;
    };
    if (columns.size() <= count ||
        !std::all_of(columns.end() - static_cast<std::ptrdiff_t>(count), columns.end(), number)) {
      continue;
    }
    std::string key = name;
    for (int again = 2; rows.count(key) > 0; ++again) {
      key = name + " " + std::to_string(again);
    }
    for (std::size_t i = columns.size() - count; i < columns.size(); ++i) {
      rows[key].push_back(std::stod(columns[i]));
    }
  }
  return rows;
}

TEST(AstraCaseStudies, SlowOneDimensionWithMoreBandwidthIsBestAndFourStillStrong) {
  // GB/s, ASTRA-sim ms, native ms, share of the bound, times W-1D 600; twice six systems.
  auto rows = rows_of("astra_case_study_1", 10, 5, "all_reduce.svg");
  ASSERT_EQ(rows.size(), 12U);
  // The reference's cycles of the setting "ideal".
  EXPECT_NEAR(rows["W-1D 350"][1], 5.729984, 0.001);
  EXPECT_NEAR(rows["W-1D 600"][1], 3.353408, 0.001);
  EXPECT_NEAR(rows["Conv-3D"][1], 9.422720, 0.001);
  for (const char* other : {"W-1D 350", "W-1D 500", "W-2D", "Conv-3D", "Conv-4D"}) {
    EXPECT_GT(rows[other][1], rows["W-1D 600"][1]) << other;
    EXPECT_GT(rows[other][2], rows["W-1D 600"][2]) << other;
  }
  for (const char* several : {"W-2D", "Conv-3D", "Conv-4D"}) {
    EXPECT_LT(rows[several][3], 0.8) << several;
  }
  EXPECT_GT(rows["W-1D 350"][3], 0.99);
  EXPECT_LT(rows["Conv-4D"][1], rows["W-2D"][1]);
  EXPECT_LT(rows["Conv-4D"][1], rows["Conv-3D"][1]);
  // "links" of the reference results.
  EXPECT_NEAR(rows["Conv-3D 2"][1], 12.240320, 0.001);
}

TEST(AstraCaseStudies, ThemisMakesEqualBandwidthEqual) {
  // Natural, Themis of ASTRA-sim, W-1D in ms, GB/s of all links, native Themis in ms, over its
  // bound.
  auto rows = rows_of("astra_case_study_2", 10, 6, "themis.svg");
  EXPECT_NEAR(rows["Conv-3D"][1], 5.805971, 0.001);  // of the reference
  for (const char* several : {"Conv-3D", "W-2D", "Conv-4D"}) {
    EXPECT_GT(rows[several][0], 1.25 * rows[several][1]) << several;
    EXPECT_NEAR(rows[several][1] / rows[several][2], 1, 0.04) << several;
    EXPECT_NEAR(rows[several][5], 1, 0.04) << several;
  }
  for (const char* one : {"W-1D", "W-1D 2", "W-1D 3"}) {
    EXPECT_NEAR(rows[one][0] / rows[one][1], 1, 0.001) << one;
  }
}

TEST(AstraCaseStudies, SlowNativeThemisCountsAllLinksOfAFullyConnectedDimension) {
  // The second table: natural, ASTRA-sim's, native.
  auto rows = rows_of("astra_case_study_2", 10, 3, "themis.svg");
  EXPECT_GT(rows["Conv-3D 2"][1], rows["Conv-3D 2"][0]);
  EXPECT_GT(rows["Conv-4D 2"][1], rows["Conv-4D 2"][0]);
  EXPECT_LT(rows["Conv-3D 2"][2], 0.65 * rows["Conv-3D 2"][0]);
  EXPECT_LT(rows["Conv-4D 2"][2], 0.8 * rows["Conv-4D 2"][0]);
}

}  // namespace
}  // namespace orrery::testing
