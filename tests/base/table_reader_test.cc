// SPDX-License-Identifier: Apache-2.0
#include "base/table_reader.h"

#include <gmock/gmock.h>

#include <array>

namespace orrery {
namespace {

using testing::HasSubstr;

CsvTable table(const std::string& text) {
  return parse_csv(text, "t.csv").value();
}

TEST(TableReader, ReadsNumbersWithinTheirLimits) {
  const CsvTable csv = table("n,time\n3,0.5\n");
  TableReader read(csv);
  read.need_all(std::array{"n", "time"});
  const CsvRow& row = read.rows().front();
  EXPECT_EQ(read.whole(row, "n", 1, 3), 3);
  EXPECT_EQ(read.number(row, "time", 1e-12, 1, "a time"), 0.5);
  EXPECT_EQ(read.text(row, "other"), "");
  EXPECT_TRUE(read.finish("no rows").empty());
}

TEST(TableReader, TellsEveryMistakeWithItsPlace) {
  const CsvTable csv = table("n,time,tme\nthree,0,1\n4,,1\n");
  TableReader read(csv);
  read.know({"n", "time"});
  for (const CsvRow& row : read.rows()) {
    EXPECT_EQ(read.whole(row, "n", 1, 3), 1);
    read.number(row, "time", 1e-12, 1, "a time above 0");
  }
  EXPECT_EQ(read.finish().to_string(),
            "t.csv:1: tme: unknown column (did you mean 'time'?)\n"
            "t.csv:2: n: found 'three', expected a whole number from 1 to 3\n"
            "t.csv:2: time: found '0', expected a time above 0\n"
            "t.csv:3: n: found '4', expected a whole number from 1 to 3\n"
            "t.csv:3: time: missing; expected a time above 0");
}

TEST(TableReader, HasNoRowsWhereAColumnIsMissing) {
  const CsvTable csv = table("byte\n1\n");
  TableReader read(csv);
  read.need("bytes");
  read.need("bytes");
  EXPECT_TRUE(read.rows().empty());
  EXPECT_EQ(read.finish("no rows").to_string(),
            "t.csv:1: header: column 'bytes' is missing (did you mean 'byte'?)");
}

TEST(TableReader, OfAFloodTellsTheFirstTwentyAndHowManyMore) {
  std::string text = "n\n";
  for (int i = 0; i < 25; ++i) {
    text += "x\n";
  }
  const CsvTable csv = table(text);
  TableReader read(csv);
  for (const CsvRow& row : read.rows()) {
    read.whole(row, "n", 0, 9);
  }
  const Error error = read.finish();
  EXPECT_EQ(error.mistakes.size(), 21U);
  EXPECT_THAT(error.to_string(), HasSubstr("t.csv: and 5 more"));
}

TEST(TableReader, AnEmptyTableIsAMistakeWhereRowsAreExpected) {
  const CsvTable csv = table("n\n");
  EXPECT_EQ(TableReader(csv).finish("no rows: expected one").to_string(),
            "t.csv: no rows: expected one");
  EXPECT_TRUE(TableReader(csv).finish().empty());
}

TEST(Collect, TakesValuesAndAllMistakes) {
  Error mistakes;
  EXPECT_EQ(collect(Result<int>(3), mistakes), 3);
  EXPECT_EQ(kept(Result<int>(3), mistakes), 3);
  EXPECT_TRUE(or_mistakes(Error(mistakes)));
  EXPECT_EQ(collect(Result<int>(fail("first")), mistakes), 0);
  EXPECT_FALSE(kept(Result<int>(fail("second")), mistakes));
  collect(Result<void>(fail("third")), mistakes);
  int held = 7;
  collect_into(held, Result<int>(fail("fourth")), mistakes);
  EXPECT_EQ(held, 7);
  collect_into(held, Result<int>(8), mistakes);
  EXPECT_EQ(or_mistakes(held, Error()).value(), 8);
  EXPECT_EQ(or_mistakes(held, mistakes).error().to_string(), "first\nsecond\nthird\nfourth");
}

}  // namespace
}  // namespace orrery
