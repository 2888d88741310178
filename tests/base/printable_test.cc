// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Printable, ControlsAndWhatIsNotUtf8AreSpelt) {
  EXPECT_EQ(printable("a\x1b[31m\x7f\tb\n"), "a\\x1b[31m\\x7f\\x09b\\n");
  EXPECT_EQ(printable("a\tb\nc\r", "\t\n"), "a\tb\nc\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m");  // U+009B, a terminal's other ESC [
  EXPECT_EQ(printable("\xff\xe2\x82"), "\\xff\\xe2\\x82");
  EXPECT_EQ(printable("\xc3\xa4\xe2\x82\xac"), "\xc3\xa4\xe2\x82\xac");  // what is text stays
}

TEST(Printable, ShortenedEndsWithAWholeCharacter) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("ab\xc3\xa4", 3), "ab...");
}

}  // namespace
}  // namespace orrery
