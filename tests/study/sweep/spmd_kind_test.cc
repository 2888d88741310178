// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Prepared spmd(const std::string& fields) {
  const auto node = parse_config(fields, "study.yaml", ConfigSyntax::yaml);
  return prepare_spmd(node.value());
}

double optimum(const std::string& fields) {
  Shared shared;
  const Prepared point = spmd(fields);
  EXPECT_TRUE(point.mistakes.empty()) << point.mistakes.to_string();
  const Outcome outcome = point.run(shared);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.figures.size(), kSpmdFigures.size());
  return std::get<double>(outcome.figures.front());
}

TEST(SpmdKind, PublishedOptimaAndWhatIsFixedOrBelieved) {
  // HiDup's own: 2.910879, data parallel 6.745146, without overlap 3.252.
  const std::string on = "spmd: {graph: Rmoe, profile: 64c8m";
  EXPECT_NEAR(optimum(on + "}"), 2.910879, 3e-6);
  EXPECT_NEAR(optimum(on + ", fixed: data_parallel}"), 6.745146, 3e-6);
  EXPECT_NEAR(optimum(on + ", overlap: none}"), 3.252, 1e-3);
  EXPECT_GE(optimum(on + ", noise: 0.8, seed: 3}"), optimum(on + ", noise: 0}"));
}

TEST(SpmdKind, MistakesAreNamedAndAProfileIsPartOfTheInputs) {
  EXPECT_THAT(
      spmd("spmd: {graph: Rmo, fixed: ddp, noise: 2, profile: 64c8m, x: 1}").mistakes.to_string(),
      AllOf(HasSubstr("spmd.graph"), HasSubstr("did you mean 'Rmoe'"), HasSubstr("spmd.fixed"),
            HasSubstr("spmd.noise"), HasSubstr("spmd.x")));
  EXPECT_THAT(spmd("spmd: {graph: Rmoe}").mistakes.to_string(), HasSubstr("spmd.profile"));
  EXPECT_THAT(spmd("spmd: {graph: Rmoe, profile: nvl8}").inputs, HasSubstr("134818107096"));
}

}  // namespace
}  // namespace orrery::sweep
