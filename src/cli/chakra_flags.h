// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::cli {

/// --chakra PREFIX and what goes with it: traces in place of a model and a plan.
class ChakraFlags {
 public:
  void declare(Options& options);
  bool given() const { return prefix_.has_value(); }
  /// Takes the prefix as if --chakra had been given.
  void give(std::string prefix) { prefix_ = std::move(prefix); }
  /// Returns the name of what runs: the prefix. Requires given().
  const std::string& name() const { return *prefix_; }
  /// Flags that mean nothing without --chakra.
  void check(Error& mistakes) const;

  /// Traces of `devices` ranks (0: as many as there are files) as a workload for `machine`
  /// (study/trace_workload.h). Requires given().
  /// `tensors`: with what the nodes read and write.
  Result<graph::Workload> read(const machine::Machine& machine, std::int64_t devices,
                               bool tensors = false) const;

 private:
  std::optional<std::string> prefix_;
  std::optional<std::string> groups_;
  bool roofline_ = false;
};

}  // namespace orrery::cli
