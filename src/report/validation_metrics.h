// SPDX-License-Identifier: Apache-2.0
/// Parts of the report of a table whose figures are of several metrics, whose rows are ranked, or
/// among whose rows a choice is made. Internal to this folder.
#pragma once

#include <string>

#include "study/validate.h"

namespace orrery::report {

/// Returns the lines for a terminal; empty where the table has none of it.
std::string metrics_as_text(const study::ValidationResult& result);

/// Returns Markdown of metrics, by group as well, of pairs and of choices; empty where there are
/// none.
std::string metrics_as_page(const study::ValidationResult& result);

}  // namespace orrery::report
