// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/network_flag.h"
#include "machine/machine.h"
#include "workload/zoo/model.h"

namespace orrery::cli {

/// --power-cap: the cap of every device of a run, instead of what the machine states.
class PowerCapFlag {
 public:
  void declare(Options& options);
  bool given() const { return cap_.has_value(); }
  /// Mistakes: what is no power, and what the machine's devices cannot be held to.
  void hold(machine::Machine& machine, Error& mistakes) const;
  /// Returns the power as it is given, of commands that read their machines later; "" without the
  /// flag.
  std::string text() const { return cap_.value_or(""); }

 private:
  std::optional<std::string> cap_;
};

/// StepInput is what a step runs on and computes; with a Plan, all that run_step needs.
struct StepInput {
  zoo::Model model;
  machine::Machine machine;
  std::int64_t devices = 0;  ///< 0 = what the plan needs
};

/// --model, --machine, --devices, --slice and --power-cap.
class StepFlags {
 public:
  void declare(Options& options);
  /// Declares the same with a --machine that may be repeated: read_each() has a step for each.
  void declare_each(Options& options);
  /// Declares --topology, for commands that simulate: what they read is laid on it.
  void declare_topology(Options& options) { topology_.declare(options); }
  bool given() const {
    return model_ || machine_ || !machines_.empty() || devices_ || topology_.given() ||
           cap_.given();
  }
  /// Names are those of model and machine, as they were given; "" where not.
  struct Names {
    std::string model;
    std::string machine;
  };
  Names names() const { return {model_.value_or(""), machine_.value_or("")}; }
  /// Missing ones are mistakes, except --devices.
  StepInput read(Error& mistakes) const;
  /// Returns how many machines are named, at least 1.
  std::size_t machines() const { return machines_.empty() ? 1 : machines_.size(); }
  /// Returns a step for each of them.
  std::vector<StepInput> read_each(Error& mistakes) const;
  /// Reads the machine without a model, which is a mistake beside `other`.
  StepInput read_machine(const std::string& other, Error& mistakes) const;

 private:
  void declare_rest(Options& options);
  /// Reads the machine of that name as the other flags want it.
  void read_machine_named(const std::optional<std::string>& name, StepInput& step,
                          Error& mistakes) const;

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::vector<std::string> machines_;  ///< of declare_each()
  std::optional<std::string> devices_;
  PowerCapFlag cap_;
  /// Cuts the machine to --slice, whose devices are those of the step unless --devices are given.
  void cut(StepInput& step, Error& mistakes) const;

  std::optional<std::string> slice_;
  TopologyFlag topology_;
};

/// Returns the whole number of `flag` within [least, most]; `fallback` when not given or a mistake.
std::int64_t whole_number(const char* flag, const std::optional<std::string>& text,
                          std::int64_t fallback, std::int64_t most, Error& mistakes);

/// Returns --threads, at most 1024; `fallback` when not given or a mistake.
int thread_count(const std::optional<std::string>& text, std::int64_t fallback, Error& mistakes);

}  // namespace orrery::cli
