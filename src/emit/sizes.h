// SPDX-License-Identifier: Apache-2.0
/// Sizes that a node has in a program. Private to emit.
#pragma once

#include <vector>

#include "emit/program.h"

namespace orrery::emit {

/// Elements of a rank's buffer, or of a member's shard where the size is of the gathered buffer.
std::int64_t elements_of(const graph::Node& node, std::int64_t members, std::int64_t shrink);

std::vector<Work> works_of(const graph::Node& node, std::int64_t shrink);

}  // namespace orrery::emit
