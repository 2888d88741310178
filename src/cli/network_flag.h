// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "simulate/network_model.h"

namespace orrery::cli {

/// --network: which model of the network a command runs on; default ports.
class NetworkFlag {
 public:
  void declare(Options& options);
  bool given() const { return name_.has_value(); }
  simulate::NetworkModel read(Error& mistakes) const;

 private:
  std::optional<std::string> name_;
};

/// The model of that name; a mistake of `flag` names what there is and, for names of old, what
/// they are called now.
simulate::NetworkModel network_named(const std::string& flag, const std::string& name,
                                     Error& mistakes);

}  // namespace orrery::cli
