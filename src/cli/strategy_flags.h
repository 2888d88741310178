// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "cli/spmd_graph.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::cli {

/// --graph and what goes with it: a program of `orrery spmd` of an operator graph, in place of a
/// model; which program, a plan's --strategy says.
class StrategyFlags {
 public:
  void declare(Options& options);
  bool given() const { return graph_.has_value(); }
  /// Flags that mean nothing without --graph.
  void check(Error& mistakes) const;
  /// Returns the program of a file as a workload for `devices` of the machine (0: as the graph
  /// says). Requires given().
  Result<graph::Workload> read(const std::string& file, const machine::Machine& machine,
                               std::int64_t devices) const;

 private:
  std::optional<std::string> graph_;
  std::optional<std::string> layers_;
  std::optional<std::string> overlap_;
};

}  // namespace orrery::cli
