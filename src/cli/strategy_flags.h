// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "cli/spmd_graph.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::cli {

/// --strategy FILE and what goes with it: a program of `orrery spmd` in place of a model and a
/// plan.
class StrategyFlags {
 public:
  void declare(Options& options);
  bool given() const { return strategy_.has_value(); }
  /// What runs. Requires given().
  const std::string& name() const { return *strategy_; }
  /// Flags that mean nothing without --strategy.
  void check(Error& mistakes) const;
  /// As a workload for `devices` of the machine (0: as the graph says). Requires given().
  Result<graph::Workload> read(const machine::Machine& machine, std::int64_t devices) const;

 private:
  std::optional<std::string> strategy_;
  std::optional<std::string> graph_;
  std::optional<std::string> layers_;
  std::optional<std::string> overlap_;
};

}  // namespace orrery::cli
