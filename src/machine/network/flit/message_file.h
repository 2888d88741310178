// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "machine/network/flit/closed_loop.h"

namespace orrery::flit {

/// A schedule as its file states it.
struct NamedSchedule {
  LoopSchedule events;
  std::vector<std::string> names;  ///< by event
};

/// Columns name, source, target, bytes, work, after, in any order; work and after may be missing.
/// A row is a message from node to node, or, with cycles of `work`, work of `source` (target and
/// bytes empty). `after`: names of rows above, with blanks between. Mistakes by line: unknown or
/// missing columns, nodes that the network does not have, names that come again or not before.
Result<NamedSchedule> read_messages(const CsvTable& table, std::size_t nodes);

}  // namespace orrery::flit
