// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "machine/machine.h"
#include "simulate/network_model.h"

namespace orrery::cli {

/// --network: which model of the network a command runs on; read() without it: ports.
class NetworkFlag {
 public:
  void declare(Options& options, const std::string& otherwise = "ports");
  bool given() const { return name_.has_value(); }
  simulate::NetworkModel read(Error& mistakes) const;
  /// Sets `model` where the flag is given.
  void take(std::optional<simulate::NetworkModel>& model, Error& mistakes) const;

 private:
  std::optional<std::string> name_;
};

/// --topology: the network of links that a machine's dimensions lie on, instead of its own; and
/// --routing, how messages find their way there.
class TopologyFlag {
 public:
  void declare(Options& options);
  bool given() const { return spec_ || routing_; }
  /// Mistakes: what is wrong with the network.
  void lay(machine::Machine& machine, Error& mistakes) const;

 private:
  std::optional<std::string> spec_;
  std::optional<std::string> routing_;
};

/// Returns the model of that name; a mistake of `flag` names what there is and, for names of old,
/// what they are called now.
simulate::NetworkModel network_named(const std::string& flag, const std::string& name,
                                     Error& mistakes);

}  // namespace orrery::cli
