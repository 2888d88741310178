// SPDX-License-Identifier: Apache-2.0
#include "datatype/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::datatype {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TimeTable two_by_two() {
  TimeTable table;
  table.add(1000, 16, 5);
  table.add(1000, 1, 1);
  table.add(3000, 16, 9);
  table.add(3000, 1, 3);
  return table;
}

TEST(TimeTable, IsBilinearInBytesAndTheLogarithmOfTheBlock) {
  const TimeTable table = two_by_two();
  EXPECT_DOUBLE_EQ(table.seconds(1000, 1), 1);
  EXPECT_DOUBLE_EQ(table.seconds(3000, 16), 9);
  EXPECT_DOUBLE_EQ(table.seconds(2000, 1), 2);
  EXPECT_DOUBLE_EQ(table.seconds(1000, 4), 3);  // log2 4 is half of log2 16
  EXPECT_DOUBLE_EQ(table.seconds(2000, 4), 4.5);
}

TEST(TimeTable, GoesOnInProportionToBytesAndStaysAtOtherEdges) {
  const TimeTable table = two_by_two();
  EXPECT_DOUBLE_EQ(table.seconds(6000, 16), 18);
  EXPECT_DOUBLE_EQ(table.seconds(10, 1), 1);
  EXPECT_DOUBLE_EQ(table.seconds(1000, 512), 5);
}

/// Packing takes a second a megabyte each way, a message `message`, typed sends `library`.
Profile simple(double library, double message) {
  Profile made;
  for (const double mib : {1.0, 8.0}) {
    const auto bytes = static_cast<std::int64_t>(mib * (1 << 20));
    made.pack.add(bytes, 8, mib);
    made.unpack.add(bytes, 8, mib);
    made.library.add(bytes, 8, library * mib);
    made.message.add(bytes, 0, message * mib);
  }
  made.pack.add(1, 8, 1e-6);
  made.unpack.add(1, 8, 1e-6);
  made.library.add(1, 8, 1e-6);
  made.message.add(1, 0, 1e-6);
  return made;
}

// 1 MiB: pack 1 s, message 2 s, unpack 1 s. In four chunks: 0.25 + 0.5 + 0.25 + 3 x 0.5.
TEST(Profile, APipelineHidesAllButTheSlowestStep) {
  const Profile profile = simple(10, 2);
  constexpr std::int64_t kMebibyte = 1 << 20;
  EXPECT_NEAR(profile.seconds(Method::packed, kMebibyte, 8), 4, 1e-9);
  EXPECT_NEAR(profile.seconds(Method::pipelined, kMebibyte, 8), 2.5, 1e-5);
  EXPECT_EQ(profile.best(kMebibyte, 8, true), Method::pipelined);
  EXPECT_EQ(profile.best(kMebibyte, 8, false), Method::packed);
}

// Packed takes 4 s, pipelined 2.5 s. A library of 2.7 s is left alone: 2.5 saves less than a tenth.
TEST(Profile, AGainBelowATenthIsNoReason) {
  EXPECT_EQ(simple(2.7, 2).best(1 << 20, 8, true), Method::library);
  EXPECT_EQ(simple(2.9, 2).best(1 << 20, 8, true), Method::pipelined);
}

TEST(Profile, TheLibraryIsChosenWhereItIsFasterOrNothingIsKnown) {
  EXPECT_EQ(simple(1, 2).best(1 << 20, 8, true), Method::library);
  EXPECT_EQ(Profile{}.best(1 << 20, 8, true), Method::library);
}

constexpr const char* kFile =
    "kind,bytes,block,seconds\n"
    "pack,64,1,1e-6\n"
    "unpack,64,1,2e-6\n"
    "library,64,1,3e-6\n"
    "message,1,0,4e-7\n";

TEST(ReadProfile, ReadsEveryTable) {
  const ReadProfile read = read_profile(kFile);
  EXPECT_THAT(read.mistakes, IsEmpty());
  EXPECT_DOUBLE_EQ(read.profile.unpack.seconds(64, 1), 2e-6);
}

TEST(ReadProfile, NamesEveryLineThatIsWrong) {
  const ReadProfile read = read_profile(
      "kind,bytes,block\n"
      "park,64,1,1e-6\n"
      "pack,none,1,1e-6\n"
      "pack,64,1,-1\n");
  EXPECT_THAT(read.mistakes,
              ElementsAre(HasSubstr("1: expected the header kind,bytes,block,seconds"),
                          HasSubstr("2: kind: found 'park', expected pack, unpack, library"),
                          HasSubstr("3: expected whole numbers"),
                          HasSubstr("4: seconds: found '-1', expected a number above 0")));
  EXPECT_TRUE(read.profile.empty());
}

TEST(ReadProfile, ATableWithAHoleIsRefused) {
  const ReadProfile read = read_profile(std::string(kFile) + "pack,64,2,1e-6\npack,256,1,2e-6\n");
  EXPECT_THAT(read.mistakes, ElementsAre(HasSubstr("table pack: expected every block")));
}

}  // namespace
}  // namespace orrery::datatype
