// SPDX-License-Identifier: Apache-2.0
/// Tables of predictions beside published results, for a terminal, for programs and as a page.
#pragma once

#include <string>
#include <vector>

#include "report/fields.h"
#include "study/validate.h"

namespace orrery::report {

/// Returns text for a terminal: the score of every table and of its groups; `all_rows`: also each
/// row.
std::string validation_table(const std::vector<study::ValidationResult>& results, bool all_rows);

/// Declares each table's rows and scores, those of its groups, of pairs of rows and of choices
/// among them. With one table its fields stand at the top level as well, the rows there only.
/// Errors and scores are shares (0.08 is 8 %); `error` is signed.
void declare(const std::vector<study::ValidationResult>& results, Fields& fields);

/// Returns whether some row could be run.
bool has_chart(const study::ValidationResult& result);

/// Returns a chart of one table, predictions over published figures on logarithmic axes; rows more
/// than 20 % off, at most 8, are named. Requires has_chart().
std::string validation_plot(const study::ValidationResult& result);

/// Returns the page docs/validation.md: scores, then profile, notes, chart (validation/TABLE.svg
/// beside the page), scores of groups and rows of every table.
std::string validation_page(const std::vector<study::ValidationResult>& results);

}  // namespace orrery::report
