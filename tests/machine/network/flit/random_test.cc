// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/random.h"

#include <gtest/gtest.h>

namespace orrery::flit {
namespace {

TEST(FlitRandom, IsKnuthsSequence) {
  // The check values that Knuth prints with his generators (TAOCP, section 3.6): seed 310952, the
  // first number of the 2,010th block of 1,009, of which 100 are used.
  Random random(310952);
  for (int i = 0; i < 2009 * 100; ++i) {
    random.next();
    random.unit();
  }
  EXPECT_EQ(random.next(), 995235265U);
  EXPECT_EQ(random.unit(), 0.36410514377569680455);
}

TEST(FlitRandom, LooksForTheFirstBelowALimit) {
  Random one(5);
  Random other(5);
  for (int i = 0; i < 200; ++i) {
    std::int64_t passed = 0;
    while (passed < 30 && one.unit() >= 0.04) {
      ++passed;
    }
    EXPECT_EQ(other.until_below(0.04, 30), passed);
  }
  EXPECT_EQ(one.unit(), other.unit());
  EXPECT_EQ(other.until_below(1, 7), 0);
}

}  // namespace
}  // namespace orrery::flit
