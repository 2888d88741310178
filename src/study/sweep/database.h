// SPDX-License-Identifier: Apache-2.0
/// SQLite, as little of it as a store needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/sweep/cell.h"

struct sqlite3;

namespace orrery::sweep {

/// A connection to one file. One thread at a time.
class Database {
 public:
  /// read: nothing that changes the file is run.
  enum class Mode : std::uint8_t { read, write, create };

  static Result<Database> open(const std::string& file, Mode mode);

  /// Runs statements without results.
  Result<void> run(const std::string& sql);
  /// Runs one statement with values for its `?`.
  Result<void> run(const std::string& sql, const std::vector<Cell>& values);
  /// Returns the rows of one statement.
  Result<Rows> query(const std::string& sql, const std::vector<Cell>& values = {});
  /// Runs `visit` with each row of one statement, of which none is kept.
  Result<void> each_row(const std::string& sql,
                        const std::function<void(const std::vector<Cell>&)>& visit);

  /// A query of a reader may do so much: instructions of SQLite's machine. As it is some seconds.
  static constexpr std::int64_t kMostSteps = 500'000'000;
  void limit(std::int64_t steps) { most_steps_ = steps; }

  const std::string& file() const { return file_; }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };

  /// Runs one statement; `visit` gets each row, and says whether the next is wanted. Returns the
  /// names of the columns.
  Result<std::vector<std::string>> step(
      const std::string& sql, const std::vector<Cell>& values,
      const std::function<bool(std::vector<Cell> row, std::size_t bytes)>& visit);
  /// Returns why a statement has not gone to its end.
  Error stopped(int state, const std::string& sql) const;
  /// Returns what SQLite says of its last call.
  Error mistake() const;
  /// Returns the mistake of a statement, with the table or column that may be meant.
  Error mistake_of_statement();

  std::string file_;
  Mode mode_ = Mode::read;
  std::int64_t most_steps_ = kMostSteps;
  std::unique_ptr<sqlite3, Close> connection_;
};

/// A column's name in SQL: in double quotes, which those inside double.
std::string quoted_name(std::string_view name);

}  // namespace orrery::sweep
