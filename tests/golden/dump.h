// SPDX-License-Identifier: Apache-2.0
/// A workload as text that two builds can compare line by line.
#pragma once

#include <string>
#include <vector>

#include "graph/workload.h"

namespace orrery::golden {

/// A part of a case, in one or several texts ("columns") that are compared apart.
struct Section {
  std::string name;
  std::vector<std::string> columns;
};

/// The text is made of fields that differ from their defaults; rows of tables are named. Columns:
///
///   tables                  ranks, roles with their state and the beginning of their issue lists,
///                           communicators, streams, phases, categories, kinds of memory
///   program P: TEMPLATE     nodes with their operators and what they wait for; then, as another
///                           column, tensors and which node reads and writes them
std::vector<Section> sections_of(const graph::Workload& workload);

}  // namespace orrery::golden
