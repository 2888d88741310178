// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/interop/interop.h"

namespace orrery::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShellWords, BlanksQuotesCommentsAndContinuedLines) {
  EXPECT_THAT(interop::shell_words("a  b\\\n  c # d\n'e f' \"g \\\" h\" i\\ j k#l ''", "x").value(),
              ElementsAre("a", "b", "c", "e f", "g \" h", "i j", "k#l", ""));
  EXPECT_TRUE(interop::shell_words(" # nothing", "x").value().empty());
}

TEST(ShellWords, WhatOnlyAShellExpandsIsAMistakeWithItsLine) {
  const std::string text =
      interop::shell_words("a\n--nnodes $NODES \"${X[@]}\"", "run.sh").error().to_string();
  EXPECT_THAT(text, HasSubstr("run.sh:2: found '$NODES'"));
  EXPECT_THAT(text, HasSubstr("run.sh:2: found '${X[@]}'"));
  EXPECT_TRUE(interop::shell_words("'$X'", "x").has_value());
  EXPECT_THAT(interop::shell_words("a 'b", "x").error().to_string(), HasSubstr("closing quote"));
}

}  // namespace
}  // namespace orrery::testing
