// SPDX-License-Identifier: Apache-2.0
/// An explanation (study/explain.h) in the forms in which people and programs read it.
#pragma once

#include <cstddef>
#include <string>

#include "report/fields.h"
#include "study/explain.h"

namespace orrery::report {

/// Critical path by category and by name (`items` of them), what bounds its kernels, sensitivities
/// and the next bottleneck, in at most 100 columns.
std::string explanation_table(const study::Explanation& explanation, std::size_t items);

/// Declares docs/schema/explain.json. What comes from no plan has a name instead of a model.
void declare(const study::Explanation& explanation, Fields& fields);

}  // namespace orrery::report
