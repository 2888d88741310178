// SPDX-License-Identifier: Apache-2.0
#include "base/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

using ::testing::ElementsAre;

TEST(Split, HasOnePartMoreThanSeparators) {
  EXPECT_THAT(split_at(std::string_view("12,13"), ','), ElementsAre("12", "13"));
  EXPECT_THAT(split_at(std::string_view(",a,"), ','), ElementsAre("", "a", ""));
  EXPECT_THAT(split_at(std::string_view("4x8"), ','), ElementsAre("4x8"));
  EXPECT_THAT(split_at(std::string_view(), ','), ElementsAre(""));
}

}  // namespace
}  // namespace orrery
