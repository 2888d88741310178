// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/checksums.h"

#include <string>

#include "study/sweep/input_hash.h"

namespace orrery::sweep {
namespace {

/// Returns the checksum of a row's values; their types count, too.
std::string checksum_of(const std::vector<Cell>& row) {
  std::string text;
  for (const Cell& cell : row) {
    const std::string value = to_string(cell);
    text += std::to_string(cell.index()) + " " + std::to_string(value.size()) + " " + value;
  }
  return input_hash(text);
}

/// Returns the mistake of a table whose rows are not those that were written.
Result<void> verify_table(Database& database, const std::string& table) {
  std::size_t torn = 0;
  auto read = database.each_row("SELECT * FROM " + table, [&](const std::vector<Cell>& row) {
    const std::vector<Cell> values(row.begin(), row.end() - 1);
    torn += to_string(row.back()) == checksum_of(values) ? 0 : 1;
  });
  if (read && torn > 0) {
    return fail(Error(Mistake{database.file(),
                              {},
                              {},
                              "damaged: " + std::to_string(torn) + " rows of " + table +
                                  " are not as they were written; take a copy, or a new store"}));
  }
  return read;
}

/// Returns the first column of a query's first row, as text; "" without a row.
Result<std::string> first_text(Database& database, const std::string& sql) {
  return database.query(sql).map([](const Rows& rows) {
    return rows.rows.empty() ? std::string() : to_string(rows.rows.front().front());
  });
}

}  // namespace

std::vector<Cell> with_checksum(std::vector<Cell> row) {
  row.emplace_back(checksum_of(row));
  return row;
}

Result<std::string> head_checksum(Database& database) {
  std::vector<Cell> all;
  const auto take = [&](const std::vector<Cell>& row) {
    all.insert(all.end(), row.begin(), row.end());
  };
  for (const std::string sql :
       {"SELECT name, value FROM head WHERE name <> 'checksum' ORDER BY name",
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"}) {
    if (auto ok = database.each_row(sql, take); !ok) {
      return fail(std::move(ok.error()));
    }
  }
  return checksum_of(all);
}

Result<bool> has_checksums(Database& database) {
  return first_text(database,
                    "SELECT name FROM head WHERE name = 'checksum' UNION ALL SELECT name FROM "
                    "pragma_table_info('results') WHERE name = 'checksum'")
      .map([](const std::string& found) { return !found.empty(); });
}

Result<void> verify_store(Database& database) {
  const auto damaged = [&](const std::string& why) {
    return fail(Error(Mistake{database.file(), {}, {}, "damaged: " + why}));
  };
  const auto said = first_text(database, "PRAGMA integrity_check(1)");
  if (!said || *said != "ok") {
    return damaged(!said || said->empty() ? "it cannot be checked" : *said);
  }
  const auto stated = first_text(database, "SELECT value FROM head WHERE name = 'checksum'");
  const auto counted = head_checksum(database);
  if (!stated || !counted || *stated != *counted) {
    return damaged("its head is not as it was written");
  }
  for (const char* const table : {"results", "points"}) {
    if (auto ok = verify_table(database, table); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace orrery::sweep
