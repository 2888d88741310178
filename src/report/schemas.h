// SPDX-License-Identifier: Apache-2.0
/// JSON schemas of the results that declare their fields (fields.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery::report {

/// Returns the names of docs/schema/NAME.json that are made, not kept by hand.
std::vector<std::string_view> declared_schemas();

/// Returns the text of docs/schema/NAME.json; "" where no result declares it.
std::string declared_schema(std::string_view name);

}  // namespace orrery::report
