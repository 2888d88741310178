// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Csv, RowsKeepTheirLineAndCells) {
  const auto table = parse_csv("a,b\n1,2\n\n3,4\r\n", "runs.csv");
  ASSERT_TRUE(table);
  EXPECT_THAT(table->header, ElementsAre("a", "b"));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_THAT(table->rows[1].cells.all(), ElementsAre("3", "4"));
  EXPECT_EQ(table->where(table->rows[1]), "runs.csv:4");
}

TEST(Csv, QuotedCellsHoldCommasQuotesAndLineBreaks) {
  const auto table = parse_csv("a,b\n\"x, y\",\"say \"\"hi\"\"\nthere\"\n1,2\n", "f");
  ASSERT_TRUE(table);
  EXPECT_THAT(table->rows[0].cells.all(), ElementsAre("x, y", "say \"hi\"\nthere"));
  EXPECT_EQ(table->rows[1].line, 4);
}

TEST(Csv, EveryMistakeIsReportedWithItsLine) {
  const auto table = parse_csv("a,a,\n1,2,3\n1,2\n1\n", "f.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().mistakes.size(), 4U);  // a twice, no name, two short rows
  EXPECT_THAT(table.error().to_string(), HasSubstr("f.csv:3"));
  EXPECT_THAT(table.error().to_string(), HasSubstr("f.csv:4"));
}

TEST(Csv, RowsOfAnotherLengthHideNoMistakeOfTheOthers) {
  const auto count = [](const CsvTable& table) -> Result<std::size_t> {
    if (table.rows.front().cells[0] == "x") {
      return fail(Error(Mistake{table.where(table.rows.front()), "a", "x", "a number"}));
    }
    return table.rows.size();
  };
  EXPECT_EQ(read_csv("a,b\n1,2\n", "f.csv", count), 1U);
  EXPECT_EQ(read_csv("a,b\n1\nx,2\n", "f.csv", count).error().to_string(),
            "f.csv:2: found '1 cells', expected 2 as in the header\n"
            "f.csv:3: a: found 'x', expected a number");
  EXPECT_FALSE(read_csv("a,b\n1\n3,2\n", "f.csv", count));
  EXPECT_FALSE(read_csv("a,b\n1\n", "f.csv", count));  // no row is right: none is read
  EXPECT_EQ(read_csv("a,a\n1\n3,2\n", "f.csv", count).error().mistakes.size(), 2U);
  EXPECT_EQ(read_csv("a,b\n3,2\n1\n3,\"2\n", "f.csv", count).error().mistakes.size(), 2U);
}

TEST(Csv, CellsAreCopiedAndGrow) {
  CsvCells cells{"a", "", "bcd"};
  const CsvCells copy = cells;
  cells.push_back("e");
  EXPECT_THAT(copy.all(), ElementsAre("a", "", "bcd"));
  EXPECT_THAT(cells.all(), ElementsAre("a", "", "bcd", "e"));
  EXPECT_EQ(CsvCells().size(), 0U);
}

/// 64 MiB / 2^20 bytes = 64 rows in a small file; of 4 MiB 20 times as much, 80 rows.
TEST(Csv, RowsThatTakeManyTimesTheirFileAreTooMany) {
  CsvTable table{.file = "f.csv", .header = {"a"}, .rows = std::vector<CsvRow>(64), .bytes = 128};
  constexpr std::size_t kEach = 1 << 20;
  EXPECT_FALSE(too_many_rows(table, kEach));
  table.rows.resize(80);
  EXPECT_EQ(Error(*too_many_rows(table, kEach)).to_string(),
            "f.csv: found '80 rows', expected at most 64 in a file of 128 bytes, since each takes "
            "1048576 bytes of memory (--big: any)");
  table.bytes = 4 << 20;
  EXPECT_FALSE(too_many_rows(table, kEach));
}

TEST(Csv, EmptyBinaryAndUnfinishedFilesAreRefused) {
  EXPECT_FALSE(parse_csv("", "f"));
  EXPECT_FALSE(parse_csv("\n\n", "f"));
  EXPECT_FALSE(parse_csv(std::string_view("a\n\0", 3), "f"));
  EXPECT_EQ(parse_csv("a\nb\n\"x\ny\n", "f").error().to_string(),
            "f:3: a quoted cell does not end");
}

RC_GTEST_PROP(Csv, AnyBytesEndInATableOrAMistake, (const std::string& bytes)) {
  const auto table = parse_csv(bytes, "f");
  if (table) {
    for (const CsvRow& row : table->rows) {
      RC_ASSERT(row.cells.size() == table->header.size());
    }
  } else {
    RC_ASSERT(!table.error().empty());
  }
}

}  // namespace
}  // namespace orrery
