// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "study/sweep/pool.h"
#include "study/sweep/run_sweep.h"

namespace orrery::sweep {
namespace {

using testing::HasSubstr;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_store_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

  /// A study of collectives, which take microseconds each.
  static Study study(const std::string& sizes = "[1 KiB, 2 KiB, 4 KiB, 1 MiB, 3 MiB, 2 KiB]") {
    const auto node = parse_config(
        "kind: collective\nmachine: dgx-h100\ncollective: {kind: all_reduce}\n"
        "vary: {collective.size: " +
            sizes + ", collective.devices: [7, 8, 16]}\n",
        "s.yaml", ConfigSyntax::yaml);
    return *parse_study(*node, "s");
  }

  /// Rows of the store as text, after it has been run.
  static std::string sweep(const Study& study, const std::string& file, SweepOptions how = {}) {
    how.version = "1";
    auto store = Store::open(file, head_of(study, how.version));
    const auto count = run_sweep(study, *store, how);
    EXPECT_TRUE(count);
    return text_of(*store) + std::to_string(count->run) + " run, " + std::to_string(count->known) +
           " known";
  }

  static std::string text_of(const Store& store) {
    std::string text;
    const Rows rows = *store.rows();
    for (const std::vector<Cell>& row : rows.rows) {
      for (const Cell& cell : row) {
        text += to_string(cell) + "|";
      }
      text += "\n";
    }
    return text;
  }

 private:
  std::filesystem::path folder_;
};

std::string rows_of(const std::string& text) {
  return text.substr(0, text.rfind('\n'));
}

TEST_F(StoreTest, RowsDoNotDependOnThreadsShardsOrInterruptions) {
  const std::string whole = sweep(study(), *this / "a.db", {.threads = 1});
  EXPECT_THAT(whole, HasSubstr("15 run, 3 known"));  // 2 KiB is there twice
  EXPECT_EQ(rows_of(sweep(study(), *this / "b.db", {.threads = 4})), rows_of(whole));
  for (int i = 0; i < 6; ++i) {
    sweep(study(), *this / "c.db", {.limit = 3});
  }
  EXPECT_EQ(rows_of(sweep(study(), *this / "c.db")), rows_of(whole));
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < 4; ++k) {
    parts.push_back(*this / ("part" + std::to_string(k)));
    sweep(study(), parts.back(), {.shard = {.index = k, .count = 4}});
  }
  ASSERT_TRUE(merge_stores(parts, *this / "d.db"));
  EXPECT_EQ(sweep(study(), *this / "d.db"), rows_of(whole) + "\n0 run, 18 known");
}

TEST_F(StoreTest, AChangedStudyKeepsTheResultsThatItStillHas) {
  sweep(study("[1 KiB, 2 KiB]"), *this / "a.db");
  const std::string more = sweep(study("[4 KiB, 2 KiB]"), *this / "a.db");
  EXPECT_THAT(more, HasSubstr("3 run, 3 known"));
  EXPECT_EQ(rows_of(more), rows_of(sweep(study("[4 KiB, 2 KiB]"), *this / "b.db")));
  EXPECT_THAT(sweep(study("[1 KiB, 2 KiB]"), *this / "a.db"), HasSubstr("0 run, 6 known"));
}

TEST_F(StoreTest, RefusedPointsAreRows) {
  const std::string rows = sweep(study("[1 KiB]"), *this / "a.db");
  EXPECT_THAT(rows, HasSubstr("0|1 KiB|7|1."));
  EXPECT_THAT(sweep(study("[0 B]"), *this / "b.db"), HasSubstr("at least 1 B"));
}

TEST_F(StoreTest, AnotherVersionRunsEverythingAgain) {
  const Study one = study();
  const SweepPoint point = prepare_point(one, 0, "1");
  EXPECT_EQ(point.hash, prepare_point(one, 0, "1").hash);
  EXPECT_NE(point.hash, prepare_point(one, 0, "2").hash);
  EXPECT_NE(study_hash(one, "1"), study_hash(one, "2"));
  EXPECT_NE(study_hash(one, "1"), study_hash(study("[1 KiB]"), "1"));
}

TEST_F(StoreTest, WhatIsNoStoreIsLeftAlone) {
  std::ofstream(*this / "text")
      << "some notes, longer than the header of a database would be, .......";
  const StoreHead head = head_of(study(), "1");
  EXPECT_THAT(Store::open(*this / "text", head).error().to_string(), HasSubstr("text: "));
  auto other = Database::open(*this / "other.db", Database::Mode::create);
  ASSERT_TRUE(other->run("CREATE TABLE mine (x)"));
  EXPECT_THAT(Store::open(*this / "other.db", head).error().to_string(), HasSubstr("not a store"));
  StoreHead simulate = head;
  simulate.kind = "simulate";
  sweep(study(), *this / "a.db");
  EXPECT_THAT(Store::open(*this / "a.db", simulate).error().to_string(),
              HasSubstr("a store of kind simulate"));
}

TEST_F(StoreTest, EveryChangedByteThatChangesAnythingIsNoticed) {
  const std::string whole = sweep(study("[1 KiB, 2 KiB]"), *this / "a.db");
  std::ifstream stream(*this / "a.db", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const StoreHead head = head_of(study("[1 KiB, 2 KiB]"), "1");
  std::size_t noticed = 0;
  constexpr std::size_t kStep = 397;  // prime, so that all parts of pages are met
  for (std::size_t at = 0; at < bytes.size(); at += kStep) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(~static_cast<unsigned char>(damaged[at]));
    std::ofstream(*this / "b.db", std::ios::binary) << damaged;
    const auto store = Store::open(*this / "b.db", head);
    noticed += store ? 0 : 1;
    if (store) {  // where nothing is stored
      EXPECT_EQ(text_of(*store), rows_of(whole) + "\n") << "byte " << at;
    }
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(*this / (std::string("b.db") + suffix));
    }
  }
  EXPECT_GT(noticed, 5U);
  auto database = Database::open(*this / "a.db", Database::Mode::write);
  ASSERT_TRUE(database->run("UPDATE results SET error = 'x' WHERE rowid = 2"));
  EXPECT_THAT(Store::open(*this / "a.db", head).error().to_string(),
              HasSubstr("damaged: 1 rows of results"));
}

TEST_F(StoreTest, SweepsOfOneStoreAtATimeShareItsPoints) {
  const Study one = study();
  const StoreHead head = head_of(one, "1");
  auto first = Store::open(*this / "a.db", head);
  auto second = Store::open(*this / "a.db", head);
  std::optional<SweepCount> others;
  SweepOptions how{.version = "1", .threads = 1};
  SweepOptions both = how;
  both.go_on = [&] {  // the second begins, and ends, within the first
    if (!others) {
      others = SweepCount{};
      others = *run_sweep(one, *second, how);
    }
    return true;
  };
  const auto count = run_sweep(one, *first, both);
  ASSERT_TRUE(count);
  EXPECT_EQ(others->run + count->run, 15U);
  EXPECT_EQ(count->run, 0U);
  EXPECT_EQ(count->known, 18U);
  EXPECT_EQ(text_of(*first), rows_of(sweep(study(), *this / "b.db")) + "\n");
  EXPECT_FALSE(std::filesystem::exists(*this / ("a.db.sweep-" + head.study.substr(0, 12))));
}

TEST_F(StoreTest, ASweepThatIsStoppedBeginsNoFurtherPoint) {
  int asked = 0;
  const std::string rows =
      sweep(study(), *this / "a.db", {.threads = 1, .go_on = [&] { return ++asked <= 4; }});
  EXPECT_THAT(rows, HasSubstr("4 run, 0 known"));
  EXPECT_THAT(sweep(study(), *this / "a.db"), HasSubstr("11 run, 7 known"));
}

TEST_F(StoreTest, QueriesAreLimitedInBytes) {
  sweep(study("[1 KiB]"), *this / "a.db");
  const auto mistake = [&](const std::string& sql) {
    return Database::open(*this / "a.db", Database::Mode::read)
        .and_then([&](Database store) { return store.query(sql); })
        .error()
        .to_string();
  };
  EXPECT_THAT(mistake("SELECT zeroblob(20000000)"), HasSubstr("values up to 16 MiB"));
  // 8 MB each: the 33rd row is beyond 256 MiB.
  EXPECT_THAT(mistake("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) "
                      "SELECT zeroblob(8000000) FROM n"),
              HasSubstr("256 MiB of rows"));
}

TEST_F(StoreTest, StoresOfDifferentStudiesAreNotMerged) {
  sweep(study(), *this / "a.db");
  sweep(study("[1 KiB]"), *this / "b.db");
  const auto merged = merge_stores({*this / "a.db", *this / "b.db"}, *this / "c.db");
  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().to_string(), HasSubstr("b.db"));
}

TEST_F(StoreTest, AReaderWritesNothing) {
  sweep(study(), *this / "a.db");
  auto reader = Database::open(*this / "a.db", Database::Mode::read);
  EXPECT_EQ(reader->query("SELECT count(*) FROM rows")->rows[0][0], Cell(std::int64_t{18}));
  EXPECT_FALSE(reader->query("DELETE FROM points"));
  EXPECT_FALSE(reader->query("SELECT 1; SELECT 2"));
  EXPECT_FALSE(reader->query("SELECT \"no such column\" FROM rows"));
  EXPECT_FALSE(Database::open(*this / "nowhere.db", Database::Mode::read));
}

TEST_F(StoreTest, AnUnknownNameSaysWhichMayBeMeant) {
  sweep(study(), *this / "a.db");
  auto reader = Database::open(*this / "a.db", Database::Mode::read);
  const auto said = [&](const std::string& sql) {
    const auto rows = reader->query(sql);
    EXPECT_FALSE(rows) << sql;
    return rows ? std::string() : rows.error().to_string();
  };
  EXPECT_THAT(said("SELECT * FROM row"), HasSubstr("no such table: row (did you mean 'rows'?)"));
  EXPECT_THAT(said("SELECT poimt FROM rows"),
              HasSubstr("no such column: poimt (did you mean 'point'?)"));
  EXPECT_THAT(said("SELECT * FROM stupendous"), ::testing::EndsWith("no such table: stupendous"));
}

TEST_F(StoreTest, APoolOfOneMakesTheSameRowsAndLeavesNothingElse) {
  const std::string whole = sweep(study(), *this / "a.db");
  const std::string file = *this / "pool/p.db";
  std::filesystem::create_directory(*this / "pool");
  const auto result = run_pool(study(), file, 3, {.version = "1", .threads = 3});
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->merged);
  EXPECT_EQ(result->missing, 0U);
  EXPECT_EQ(sweep(study(), file), rows_of(whole) + "\n0 run, 18 known");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(*this / "pool")) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, testing::ElementsAre("p.db"));
}

TEST_F(StoreTest, APointOfAPoolIsHeldByOneAndFreeWhenItsHolderIsGone) {
  auto a = PoolFile::open(*this / "pool");
  auto b = PoolFile::open(*this / "pool");
  EXPECT_EQ(a->claim(5, false), PoolFile::Claim::taken);
  EXPECT_EQ(b->claim(5, false), PoolFile::Claim::held);
  EXPECT_EQ(b->claim(4, false), PoolFile::Claim::taken);
  { const PoolFile dead = std::move(*a); }
  EXPECT_EQ(b->claim(5, true), PoolFile::Claim::taken);
  b->release(5, true);
  auto c = PoolFile::open(*this / "pool");
  EXPECT_EQ(c->claim(5, true), PoolFile::Claim::done);
  c->join(9);
  EXPECT_FALSE(b->merge(9));
  c->leave(9);
  EXPECT_TRUE(b->merge(9));
  EXPECT_FALSE(c->merge(9));
}

TEST(Shard, IsKOfN) {
  EXPECT_EQ(parse_shard("3/8").value_or(Shard()).index, 3U);
  EXPECT_EQ(parse_shard("3/8").value_or(Shard()).count, 8U);
  for (const char* wrong : {"8/8", "3", "3/", "/8", "a/8", "3/8x", "-1/8", ""}) {
    EXPECT_FALSE(parse_shard(wrong)) << wrong;
  }
}

TEST_F(StoreTest, AQueryThatDoesNotEndIsEnded) {
  const std::string file = *this / "s.db";
  sweep(study("[1 KiB]"), file);
  auto store = Database::open(file, Database::Mode::read);
  ASSERT_TRUE(store);
  store->limit(10'000'000);
  const std::string count = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT ";
  const auto some = store->query(count + "1000) SELECT count(*) FROM r");
  ASSERT_TRUE(some) << some.error().to_string();
  EXPECT_EQ(std::get<std::int64_t>(some->rows[0][0]), 1000);
  const auto ever = store->query(count + "-1) SELECT count(*) FROM r");
  ASSERT_FALSE(ever);
  EXPECT_THAT(ever.error().to_string(), HasSubstr("a statement that ends"));
  EXPECT_TRUE(store->query("SELECT count(*) FROM rows"));  // and the store is as it was
}

}  // namespace
}  // namespace orrery::sweep
