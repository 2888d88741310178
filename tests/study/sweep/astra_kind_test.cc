// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "study/sweep/kind.h"
#include "study/sweep/run_sweep.h"
#include "study/sweep/study.h"

namespace orrery::sweep {
namespace {

using ::testing::HasSubstr;

const std::string kTraces = std::string(ORRERY_SOURCE_DIR) + "/examples/astra_quickstart/";

Result<Study> traces_study(const std::string& rest, const std::string& workload) {
  return parse_config("kind: astra\nworkload: " + workload + "\nsystem: " + kTraces +
                          "system.json\nnetwork: " + kTraces + "network.yml\nmemory: " + kTraces +
                          "memory.json\n" + rest,
                      "study.yaml", ConfigSyntax::yaml)
      .and_then([](const ConfigNode& node) { return parse_study(node, "study"); });
}

double traces_figure(const Study& study, std::size_t point, std::size_t figure) {
  Shared shared;
  const Outcome outcome = prepare_point(study, point, "1").run(shared);
  EXPECT_EQ(outcome.error, "");
  return std::get<double>(outcome.figures.at(figure));
}

TEST(AstraKind, FieldsOfItsFilesAreVaried) {
  const auto study = traces_study(
      "vary:\n  network.bandwidth.1: [50.0, 100.0]\n  system.boost-mode: [0, 1]\n"
      "  quirks_off: [none, gib-bandwidth]\n",
      kTraces + "trace");
  EXPECT_THAT(study.error().to_string(), HasSubstr("study.yaml:9: quirks_off: found 'none'"));
  const auto good = traces_study("vary: {network.bandwidth.1: [50.0, 100.0]}\n", kTraces + "trace");
  ASSERT_TRUE(good) << good.error().to_string();
  ASSERT_EQ(good->space.count, 2U);
  // 6,314,000 cycles of a nanosecond: as ASTRA-sim itself says of these files.
  EXPECT_DOUBLE_EQ(traces_figure(*good, 0, 1), 6.314e-3);
  EXPECT_LT(traces_figure(*good, 1, 1), 6.314e-3);
}

TEST(AstraKind, AResultBelongsToWhatTheTracesSay) {
  std::string name = (std::filesystem::temp_directory_path() / "orrery_astra_XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  const std::string file = (folder / "trace.all.et").string();
  const auto hash = [&](const char* content) {
    EXPECT_TRUE(write_file(file, content));
    const auto study = traces_study("", (folder / "trace").string());
    return study ? prepare_point(*study, 0, "1").hash : study.error().to_string();
  };
  const std::string first = hash("one");
  EXPECT_NE(first, hash("two"));
  EXPECT_EQ(first, hash("one"));
  std::filesystem::remove_all(folder);
}

TEST(AstraKind, ATraceThatIsMissingIsThePointsError) {
  const auto study = traces_study("", kTraces + "no_trace");
  ASSERT_TRUE(study) << study.error().to_string();
  Shared shared;
  EXPECT_THAT(prepare_point(*study, 0, "1").run(shared).error, HasSubstr("no_trace"));
}

}  // namespace
}  // namespace orrery::sweep
