// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/config_node.h"
#include "report/json_writer.h"

namespace orrery::report {

/// Writes a YAML document as JSON: numbers, true, false and null where the text means them.
void write_node(JsonWriter& json, const ConfigNode& node);

}  // namespace orrery::report
