// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/input_hash.h"

#include <gtest/gtest.h>

namespace orrery::sweep {
namespace {

TEST(InputHash, IsFnv1aOf128Bits) {
  // The empty text leaves the offset basis; "a" and "foobar" are test vectors of RFC 9923.
  EXPECT_EQ(input_hash(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(input_hash("a"), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(input_hash("foobar"), "343e1662793c64bf6f0d3597ba446f18");
}

}  // namespace
}  // namespace orrery::sweep
