// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::cli {

/// --graph, and of a named one --devices (8) and --layers (8; of the zoo the model's), as they were
/// given; of the zoo also --batch and --sequence.
struct GraphWords {
  std::optional<std::string> graph{};
  std::optional<std::string> devices{};
  std::optional<std::string> layers{};
  std::optional<std::string> batch{};
  std::optional<std::string> sequence{};
  bool mesh = false;  ///< DecoderSize::mesh
};

/// The graph of a name or a file.
spmd::OperatorGraph read_graph(const GraphWords& words, Error& mistakes);

}  // namespace orrery::cli
