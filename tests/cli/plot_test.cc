// SPDX-License-Identifier: Apache-2.0
// `orrery plot`: charts of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PlotCommand, ATableBecomesAPicture) {
  const Folder folder;
  const std::string file = folder.write("t.csv", "x,a\n1,2\n2,3\n");
  const Outcome drawn = orrery("plot lines " + file + " --title Times");
  EXPECT_EQ(drawn.status, 0);
  EXPECT_THAT(drawn.out, StartsWith("<svg "));
  EXPECT_THAT(drawn.out, HasSubstr(">Times</text>"));
}

TEST(PlotCommand, EveryMistakeIsReportedAtOnce) {
  const Outcome refused = orrery("plot bar /nowhere.csv");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("did you mean 'bars'?"));
  EXPECT_THAT(refused.err, HasSubstr("/nowhere.csv"));
  EXPECT_THAT(orrery("plot bars /nowhere.csv --log-x").err, HasSubstr("bars stand over names"));
}

}  // namespace
}  // namespace orrery::testing
