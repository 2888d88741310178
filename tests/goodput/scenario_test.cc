// SPDX-License-Identifier: Apache-2.0
#include "goodput/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "base/file.h"
#include "goodput/question.h"

namespace orrery::goodput {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<std::vector<Component>> components_of(const std::string& yaml) {
  const auto root = parse_config(yaml, "f.yaml", ConfigSyntax::yaml);
  EXPECT_TRUE(root);
  Component otherwise;
  otherwise.restart = Duration(300);
  return read_components(*root, otherwise);
}

TEST(Scenario, RatesOfDevicesNodesAndTheJobAddUp) {
  // 1,024 devices of 100,000 h, 128 nodes of 20,000 h, once in 1,000 h the job:
  // 0.01024 + 0.0064 + 0.001 = 0.01764 an hour.
  const auto components = components_of(
      "components:\n"
      "  - {name: gpu, mtbf: 100000 h}\n"
      "  - {name: host, mtbf: 20000 h, per: node, diagnosis: 20 min}\n"
      "  - {name: power, mtbf: 1000 h, per: job, nodes: 32, restart: 1 h}\n");
  ASSERT_TRUE(components);
  Scenario scenario;
  scenario.devices = 1024;
  scenario.components = *components;
  EXPECT_NEAR(mtbf_of(scenario.stops()).value(), 3600 / 0.01764, 1e-6);
  EXPECT_EQ(scenario.stops()[1].restart, Duration(1500));  // its own 20 min and the 300 s of all
  EXPECT_EQ(scenario.stops()[2].restart, Duration(3600));
}

TEST(Scenario, EveryMistakeOfAFileIsNamedWithItsLine) {
  const auto components = components_of(
      "components:\n"
      "  - {name: gpu, mtbf: 0 h}\n"
      "  - {name: host, mtfb: 20000 h}\n"
      "  - {name: power, mtbf: 3 parsecs, nodes: -1}\n");
  ASSERT_FALSE(components);
  EXPECT_THAT(components.error().to_string(),
              AllOf(HasSubstr("f.yaml:2"), HasSubstr("f.yaml:3"), HasSubstr("did you mean 'mtbf'"),
                    HasSubstr("f.yaml:4"), HasSubstr("found '3 parsecs'"), HasSubstr("'-1'")));
  EXPECT_FALSE(components_of("components: []\n"));
}

TEST(Scenario, ALogGivesRatesWithTheirPoissonInterval) {
  const std::string file = ::testing::TempDir() + "stops.csv";
  ASSERT_TRUE(write_file(file, "hours,component\n1,gpu\n2,gpu\n3,host\n30,gpu\n40,gpu\n"));
  const auto rates = fit_log(file, 100, Duration(50 * 3600), {});
  ASSERT_TRUE(rates);
  ASSERT_EQ(rates->size(), 2);
  // 5,000 device hours / 4 stops. Chi-square quantiles: 10 % with 8 degrees 3.490, 90 % with 10
  // degrees 15.987: 2 x 5000 / 15.987 = 625.5 h to 2 x 5000 / 3.490 = 2865 h.
  EXPECT_DOUBLE_EQ((*rates)[0].component.mtbf.value(), 1250 * 3600.0);
  EXPECT_NEAR((*rates)[0].mtbf_low.value() / 3600, 625.5, 6);
  EXPECT_NEAR((*rates)[0].mtbf_high.value() / 3600, 2865, 29);
  ASSERT_TRUE(write_file(file, "hour,component\n1,gpu\n"));
  EXPECT_THAT(fit_log(file, 100, Duration(50 * 3600), {}).error().to_string(),
              HasSubstr("did you mean 'hours'"));
  ASSERT_TRUE(write_file(file, "hours,component\n51,gpu\nx,gpu\n3,\n"));
  EXPECT_THAT(fit_log(file, 100, Duration(50 * 3600), {}).error().to_string(),
              AllOf(HasSubstr("stops.csv:2"), HasSubstr("stops.csv:3"),
                    HasSubstr("stops.csv:4: component")));
  std::remove(file.c_str());
}

TEST(Question, SaysWhatNobodyStated) {
  Question question;
  question.mtbf = Duration(3600);
  const auto stated = [](std::string_view name) { return name == "mtbf" || name == "restart"; };
  const auto asked = ask(question, 8, stated);
  ASSERT_TRUE(asked);
  ASSERT_EQ(asked->assumed.size(), 2);  // checkpoint_cost, spares
  EXPECT_THAT(asked->assumed[0], HasSubstr("60 s"));
}

TEST(Question, RefusesTwoSourcesOfRatesAndFreeCheckpointsAtOnce) {
  Question question;
  question.mtbf = Duration(3600);
  question.job_mtbf = Duration(3600);
  question.checkpoint_cost = Duration(0);
  const auto asked = ask(question, 8, [](std::string_view) { return true; });
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().to_string(), AllOf(HasSubstr("one of mtbf, job_mtbf, failures and log"),
                                               HasSubstr("free checkpoints")));
}

}  // namespace
}  // namespace orrery::goodput
