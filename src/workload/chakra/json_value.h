// SPDX-License-Identifier: Apache-2.0
/// Scalars of Chakra JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "workload/chakra/record.h"

namespace orrery::chakra {

/// Returns "duration_micros" for "durationMicros".
std::string snake_case(std::string_view name);

/// Reads a whole number of 64 bits, not negative.
std::optional<std::uint64_t> natural(std::string_view text);

/// Returns a value as it stands, without saying which type: of the workload_graph form.
std::optional<Value> bare_value(const ConfigNode& node);

/// Returns whether a field is one of AttributeProto's values: "int64_val", "bool_list".
bool is_value_field(std::string_view field);

/// Returns the value of such a field. Whole numbers of all types are read alike.
std::optional<Value> typed_value(std::string_view field, const ConfigNode& node);

}  // namespace orrery::chakra
