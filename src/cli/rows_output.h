// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "study/sweep/cell.h"

namespace orrery::cli {

/// Returns the rows of a store in columns for a terminal.
std::string rows_table(const sweep::Rows& rows);
std::string rows_csv(const sweep::Rows& rows);
/// Returns {"columns": [...], "rows": [{column: value, ...}, ...]}; null where a row has nothing.
std::string rows_json(const sweep::Rows& rows);

/// --plot X,Y and --out FILE.svg: two columns of rows as a chart.
class RowsPlot {
 public:
  void declare(Options& options);
  /// Refuses --out without --plot, or the other way round.
  void check(Error& mistakes) const;
  bool given() const { return columns_.has_value(); }

  /// Writes the chart: dots where all of X are numbers, if need be with one unit ("100 GB/s"), bars
  /// where they are names. Rows without X or Y are left out. Mistakes: columns that there are not.
  Result<void> write(const sweep::Rows& rows) const;

 private:
  std::optional<std::string> columns_;
  std::optional<std::string> file_;
};

}  // namespace orrery::cli
