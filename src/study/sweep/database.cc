// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/misread.h"
#include "base/names.h"

namespace orrery::sweep {
namespace {

/// A process waits so many milliseconds for another that writes.
constexpr int kPatience = 60'000;

/// The most bytes that the rows of a query may take here, as many as the command then prints from.
constexpr std::size_t kMostBytesRead = std::size_t{256} << 20;
/// The longest text or blob that SQLite may make for a reader.
constexpr int kLongestValue = 16 << 20;
/// The most bytes that SQLite itself may take for a reader, for sorting above all.
constexpr const char* kMostHeap = "PRAGMA hard_heap_limit = 536870912";
constexpr int kStepsAtOnce = 1'000'000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

void bind(sqlite3_stmt* statement, int place, const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    sqlite3_bind_text64(statement, place, text->data(), text->size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  } else if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
    sqlite3_bind_int64(statement, place, *integer);
  } else if (const auto* number = std::get_if<double>(&cell)) {
    sqlite3_bind_double(statement, place, *number);
  }  // else it stays NULL
}

Cell cell_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return {};
    default:
      break;
  }
  const auto* const text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return text == nullptr ? std::string() : std::string(text, size);
}

std::vector<Cell> row_of(sqlite3_stmt* statement) {
  const int columns = sqlite3_column_count(statement);
  std::vector<Cell> row;
  row.reserve(static_cast<std::size_t>(columns));
  for (int i = 0; i < columns; ++i) {
    row.push_back(cell_at(statement, i));
  }
  return row;
}

/// Returns what a row takes once it is read.
std::size_t bytes_of_row(sqlite3_stmt* statement) {
  std::size_t bytes = sizeof(std::vector<Cell>);
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    const int type = sqlite3_column_type(statement, i);
    const bool is_text = type == SQLITE_TEXT || type == SQLITE_BLOB;
    bytes +=
        sizeof(Cell) + (is_text ? static_cast<std::size_t>(sqlite3_column_bytes(statement, i)) : 0);
  }
  return bytes;
}

/// Returns the flags of a mode. What a killed process has left beside its file can only be taken up
/// by who may write, so readers may too, and are refused each statement that would.
int flags_of(Database::Mode mode) {
  return SQLITE_OPEN_READWRITE | (mode == Database::Mode::create ? SQLITE_OPEN_CREATE : 0);
}

}  // namespace

void Database::Close::operator()(sqlite3* connection) const {
  sqlite3_close_v2(connection);
}

Error Database::mistake() const {
  return Error(Mistake{file_, {}, {}, sqlite3_errmsg(connection_.get())});
}

Error Database::mistake_of_statement() {
  struct Kind {
    std::string_view said;
    const char* names;
  };
  constexpr std::array kKinds{
      Kind{"no such table: ", "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"},
      Kind{"no such column: ", "SELECT name FROM pragma_table_info('rows')"}};
  Error said = mistake();
  std::string& text = said.mistakes.front().expected;
  for (const Kind& kind : kKinds) {
    if (!text.starts_with(kind.said)) {
      continue;
    }
    const std::string unknown = text.substr(kind.said.size());
    std::vector<std::string> names;
    const Rows known = query(kind.names).value_or(Rows());
    names.reserve(known.rows.size());
    for (const auto& row : known.rows) {
      names.push_back(std::get<std::string>(row.front()));
    }
    const bool dotted = std::ranges::find(names, unknown) != names.end();
    text += dotted ? "; names with dots stand in double quotes" : did_you_mean(unknown, names);
    break;
  }
  return said;
}

Result<Database> Database::open(const std::string& file, Mode mode) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (mode != Mode::create && !std::filesystem::exists(status)) {
    return fail(Error(Mistake{file, {}, {}, "no such file; expected a store of `orrery sweep`"}));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fail(
        Error(Mistake{file, {}, {}, "is no regular file; expected a store of `orrery sweep`"}));
  }
  Database database;
  database.file_ = file;
  database.mode_ = mode;
  sqlite3* connection = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &connection, flags_of(mode), nullptr);
  database.connection_.reset(connection);
  if (opened != SQLITE_OK) {
    return fail(database.mistake());
  }
  sqlite3_busy_timeout(connection, kPatience);
  // A misspelt "column" is a mistake, not a text.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  if (mode == Mode::read) {
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kLongestValue);
    for (const char* const rule : {"PRAGMA query_only = ON", kMostHeap}) {
      if (auto ok = database.run(rule); !ok) {
        return fail(std::move(ok.error()));
      }
    }
  }
  return database;
}

Result<void> Database::run(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(mistake());
  }
  return {};
}

Result<void> Database::run(const std::string& sql, const std::vector<Cell>& values) {
  return query(sql, values).map([](const Rows&) {});
}

Result<void> Database::each_row(const std::string& sql,
                                const std::function<void(const std::vector<Cell>&)>& visit) {
  return step(sql, {},
              [&](const std::vector<Cell>& row, std::size_t) {
                visit(row);
                return true;
              })
      .map([](const std::vector<std::string>&) {});
}

Result<Rows> Database::query(const std::string& sql, const std::vector<Cell>& values) {
  Rows rows;
  std::size_t bytes_read = 0;
  const auto keep = [&](std::vector<Cell> row, std::size_t bytes) {
    bytes_read += bytes;
    rows.rows.push_back(std::move(row));
    return mode_ != Mode::read || bytes_read <= kMostBytesRead;
  };
  return step(sql, values, keep).map([&](std::vector<std::string> columns) {
    rows.columns = std::move(columns);
    return std::move(rows);
  });
}

Result<std::vector<std::string>> Database::step(
    const std::string& sql, const std::vector<Cell>& values,
    const std::function<bool(std::vector<Cell> row, std::size_t bytes)>& visit) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int prepared =
      sqlite3_prepare_v2(connection_.get(), sql.c_str(), static_cast<int>(sql.size()), &raw, &rest);
  const Statement statement(raw);
  if (prepared != SQLITE_OK) {
    return fail(mistake_of_statement());
  }
  if (statement == nullptr ||
      std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    return fail(Error(misread(file_, {}, sql, "one statement")));
  }
  if (mode_ == Mode::read && sqlite3_stmt_readonly(raw) == 0) {
    return fail(Error(Mistake{file_, {}, sql, "a statement that only reads"}));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    bind(raw, static_cast<int>(i) + 1, values[i]);
  }
  std::int64_t left = most_steps_;
  if (mode_ == Mode::read) {
    sqlite3_progress_handler(
        connection_.get(), kStepsAtOnce,
        [](void* steps) {
          return static_cast<int>((*static_cast<std::int64_t*>(steps) -= kStepsAtOnce) <= 0);
        },
        &left);
  }
  std::vector<std::string> columns;
  for (int i = 0; i < sqlite3_column_count(raw); ++i) {
    columns.emplace_back(sqlite3_column_name(raw, i));
  }
  int state = sqlite3_step(raw);
  for (; state == SQLITE_ROW; state = sqlite3_step(raw)) {
    if (!visit(row_of(raw), bytes_of_row(raw))) {
      state = SQLITE_INTERRUPT;
      break;
    }
  }
  sqlite3_progress_handler(connection_.get(), 0, nullptr, nullptr);
  if (state == SQLITE_DONE) {
    return columns;
  }
  return fail(stopped(state, sql));
}

Error Database::stopped(int state, const std::string& sql) const {
  if (state == SQLITE_INTERRUPT) {
    return Error(
        Mistake{file_,
                {},
                sql,
                "a statement that ends: it went on beyond 500 million steps or 256 MiB of rows"});
  }
  if (mode_ == Mode::read && (state == SQLITE_NOMEM || state == SQLITE_TOOBIG)) {
    return Error(
        Mistake{file_, {}, sql, "a statement of values up to 16 MiB that needs at most 512 MiB"});
  }
  return mistake();
}

std::string quoted_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c;
    if (c == '"') {
      text += c;
    }
  }
  return text += '"';
}

}  // namespace orrery::sweep
