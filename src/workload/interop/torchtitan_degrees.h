// SPDX-License-Identifier: Apache-2.0
/// Releases of torchtitan differ in where they keep their degrees. Internal to this folder.
#pragma once

#include "base/config_node.h"

namespace orrery::interop {

/// Releases before the table [parallelism] (torchtitan, late 2024) have its keys in [training] and
/// [experimental]: moves them there. One that [parallelism] has too stays, where nothing reads it.
void move_degrees(ConfigNode& node);

}  // namespace orrery::interop
