// SPDX-License-Identifier: Apache-2.0
/// All public cases, with their seed: the same packets, and the same fate of each.
#include "reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::flit {
namespace {

const std::string kFolder = ORRERY_SOURCE_DIR "/tests/machine/network/flit/reference/";

/// Half of the last of six digits, as the cases are printed.
double half_digit(double value) {
  return 0.51 * std::pow(10, std::floor(std::log10(value)) - 5);
}

/// Cells that a row leaves empty were not published.
void expect_equal(const OpenLoopResult& run, const ReferenceRow& reference,
                  const std::string& name) {
  EXPECT_TRUE(run.stable) << name << run.reason;
  const auto expect = [&](double ours, const char* column) {
    if (!reference.text(column).empty()) {
      const double theirs = reference.number(column);
      EXPECT_NEAR(ours, theirs, half_digit(theirs)) << name << " " << column;
    }
  };
  expect(run.packet_latency, "packet_latency");
  expect(run.network_latency, "network_latency");
  expect(run.flit_latency, "flit_latency");
  expect(run.hops, "hops");
  expect(run.injected, "injected_rate");
  expect(run.accepted, "accepted_rate");
}

TEST(FlitReference, LatencyHopsAndLoadAreEqualToTheLastDigit) {
  const auto table = load_csv(kFolder + "cases.csv");
  ASSERT_TRUE(table);
  for (const CsvRow& row : table->rows) {
    const ReferenceRow reference{*table, row};
    const std::string& name = reference.text("case");
    Experiment experiment = reference.experiment();
    experiment.load.rate = reference.number("offered_rate");
    experiment.rules = Rules::booksim;
    const auto prepared = prepare(experiment);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    const OpenLoopResult run = run_open_loop(*prepared->graph, prepared->routing, experiment.router,
                                             prepared->traffic, experiment.load);
    expect_equal(run, reference, name);
    // 4 there until the last credit is back.
    EXPECT_EQ(static_cast<double>(run.cycles) + 4, reference.number("simulated_cycles")) << name;
  }
}

/// Reads BookSim's settings. A build of others has another threshold of ugal, which no file states:
/// "ugal_threshold = 0; " before them.
Result<Experiment> experiment_of(std::string settings) {
  constexpr std::string_view kThreshold = "ugal_threshold = 0; ";
  const bool none = settings.starts_with(kThreshold);
  settings.erase(0, none ? kThreshold.size() : 0);
  return parse_booksim(settings + ";\n", settings).map([&](Experiment experiment) {
    experiment.router.ugal_bias = none ? std::optional<std::int64_t>(0) : std::nullopt;
    return experiment;
  });
}

/// Runs of others, with the settings that they state (README.md).
TEST(FlitReference, PublishedRunsAreEqualToTheLastDigit) {
  const auto table = load_csv(kFolder + "published_runs.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.size(), 18U);
  for (const CsvRow& row : table->rows) {
    const ReferenceRow reference{*table, row};
    const std::string& settings = reference.text("settings");
    const auto experiment = experiment_of(settings);
    ASSERT_TRUE(experiment) << experiment.error().to_string();
    const auto prepared = prepare(*experiment);
    ASSERT_TRUE(prepared) << settings << prepared.error().to_string();
    expect_equal(run_open_loop(prepared->network(*experiment), experiment->load), reference,
                 settings);
  }
}

TEST(FlitReference, SaturationIsEqual) {
  const auto table = load_csv(kFolder + "saturation.csv");
  ASSERT_TRUE(table);
  for (const CsvRow& row : table->rows) {
    const ReferenceRow reference{*table, row};
    const Experiment experiment = reference.experiment();
    const auto prepared = prepare(experiment);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    const Saturation found = find_saturation(experiment, *prepared, {});
    EXPECT_EQ(found.offered, reference.number("saturation_offered_rate")) << reference.text("case");
    EXPECT_NEAR(found.accepted, reference.number("accepted_rate_at_saturation"), 5.1e-7)
        << reference.text("case");
  }
}

}  // namespace
}  // namespace orrery::flit
