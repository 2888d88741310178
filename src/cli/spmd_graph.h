// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::cli {

/// --graph, and of a named one --devices (8) and --layers (8), as they were given.
struct GraphWords {
  std::optional<std::string> graph;
  std::optional<std::string> devices;
  std::optional<std::string> layers;
};

/// The graph of a name or a file.
spmd::OperatorGraph read_graph(const GraphWords& words, Error& mistakes);

}  // namespace orrery::cli
