// SPDX-License-Identifier: Apache-2.0
/// Flags of `orrery astra`: links that messages share, and `--native`.
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
  /// Sets `options.backend` where ASTRA-sim's engine is to run on links: because the network file
  /// states some (`has_links`), or a flag asks for them; then `has_backend`, one of ASTRA-sim's, is
  /// a mistake, as are flags that go with --native only.
  void read(bool has_links, bool has_backend, astra::RunOptions& options, Error& mistakes);
  bool wanted() const { return native_; }
  /// Sets `options.wires`, without --native.
  Result<void> lay(const astra::Loaded& loaded, astra::RunOptions& options) const;

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
  std::optional<std::string> network_;
  simulate::NetworkModel model_ = simulate::NetworkModel::ports;
  bool native_ = false;
};

}  // namespace orrery::cli
