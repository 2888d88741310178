// SPDX-License-Identifier: Apache-2.0
#include "report/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::report {
namespace {

TEST(PlanSearchReport, SaysThatASearchWasStoppedInsteadOfThatNothingFits) {
  full::Answer answer;
  EXPECT_THAT(plan_search_table({}, answer, {}),
              ::testing::HasSubstr("No plan that fits was found within --estimates and --bounds."));
  answer.complete = true;
  EXPECT_THAT(plan_search_table({}, answer, {}), ::testing::HasSubstr("No plan fits."));
  answer.stopped = true;
  const std::string text = plan_search_table({}, answer, {});
  EXPECT_THAT(text, ::testing::HasSubstr("Stopped before a plan had been simulated."));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("fits")));
}

}  // namespace
}  // namespace orrery::report
