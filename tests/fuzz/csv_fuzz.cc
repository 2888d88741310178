// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a table of results: rows as wide as the header, or a reason.
#include "base/csv.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(csv) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto table = orrery::parse_csv(text, "input");
  if (!table) {
    orrery::fuzz::hold_error(table.error());
    return 0;
  }
  for (const orrery::CsvRow& row : table->rows) {
    orrery::fuzz::hold(row.cells.size() == table->header.size(), "rows fit the header");
  }
  return 0;
}
