// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/fields.h"

namespace orrery::report {

/// Writes "timing": {"wall_s": seconds}, how long this computer took: all that differs from run to
/// run of equal inputs.
inline void write_timing(JsonWriter& json, double seconds) {
  json.key("timing").begin_object();
  json.key("wall_s").value(seconds);
  json.end_object();
}

inline void declare_timing(Fields& fields, double seconds) {
  fields.object("timing", "of this computer: differs from run to run",
                [&] { fields.field("wall_s", "seconds", seconds); });
}

}  // namespace orrery::report
