// SPDX-License-Identifier: Apache-2.0
/// Flags of `orrery astra --native`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "cli/network_flag.h"
#include "compat/astra/load.h"
#include "report/astra_native.h"

namespace orrery::cli {

class NativeFlags {
 public:
  void declare(Options& options);
  /// Also mistakes: the other flags without --native.
  void read(Error& mistakes);
  bool wanted() const { return native_; }

  /// Runs the input as ASTRA-sim would (`options`) and on the event loop of training steps: on the
  /// machine that its files describe, or on the one asked for. Mistakes: those of the event loop;
  /// what only ASTRA-sim's engine refuses is told beside the other result.
  Result<report::NativeReport> run(const astra::Loaded& loaded, const astra::RunOptions& options,
                                   const astra::Files& files) const;

 private:
  Result<machine::Machine> machine_for(const astra::RunInput& input,
                                       const astra::RunOptions& options) const;
  Result<topology::Wires> wires_for(const std::string& network, std::int64_t ranks) const;
  Result<study::WorkloadRun> run_loop(const astra::Loaded& loaded, const astra::RunOptions& options,
                                      const astra::Files& files) const;

  std::optional<std::string> name_;
  std::optional<std::string> topology_;
  machine::Machine machine_;  ///< of that name
  NetworkFlag network_;
  simulate::NetworkModel model_ = simulate::NetworkModel::ports;
  bool native_ = false;
};

}  // namespace orrery::cli
