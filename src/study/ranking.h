// SPDX-License-Identifier: Apache-2.0
/// A ranking says what predictions are worth for choices between rows of a table.
///
/// Pairs: two answered rows that agree in the columns `same` and in those of every respect but
/// one (layout, machine, engine ...), whose published figures of the metric differ by more than
/// 5 %: equal settings measured twice differ as much. Right: the predictions are in the same order.
///
/// Regret: in each group of rows that agree in `within`, the row with the greatest predicted rate
///
///   seats tokens / (TTFT + (tokens - 1) metric) / devices
///
/// among those whose predicted metric keeps the limit, a share `spare` of it left free. It breaks
/// the limit where its published figure does; else its loss is what its published rate lacks of the
/// best published one that keeps it. Groups of one row do not count, nor do those of which no row
/// keeps the limit as predicted, or none as published.
///
/// Ignores: rows that are not scored. Times are in the unit of their columns, the same for both.
#pragma once

#include "base/csv.h"
#include "study/validate.h"

namespace orrery::study {

/// Fills `ranking` and `regret` of a result whose profile asks for them.
void compare_rows(const CsvTable& table, ValidationResult& result);

}  // namespace orrery::study
