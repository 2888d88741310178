// SPDX-License-Identifier: Apache-2.0
/// Flags of `orrery astra --native`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "compat/astra/run.h"
#include "report/astra_native.h"

namespace orrery {

class NativeFlags {
 public:
  void declare(Options& options);
  /// Also mistakes: the other flags without --native.
  void check(Error& mistakes) const;
  bool wanted() const { return native_; }

  /// Runs `input` as ASTRA-sim would and natively: on the links of its own network, or on the
  /// machine asked for. A list of implementations whose entries are all equal is stretched to the
  /// machine's dimensions.
  Result<NativeReport> run(const astra::RunInput& input, const astra::RunOptions& options,
                           const std::string& network_file) const;

 private:
  Result<astra::RunInput> on_machine(const astra::RunInput& input,
                                     astra::NativeNetworkOptions& network) const;

  std::optional<std::string> machine_;
  std::optional<std::string> forwarding_;
  std::optional<std::string> sharing_;
  bool native_ = false;
};

}  // namespace orrery
