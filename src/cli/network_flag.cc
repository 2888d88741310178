// SPDX-License-Identifier: Apache-2.0
#include "cli/network_flag.h"

#include <array>

namespace orrery {
namespace {

/// What the models were called before, and what others call them.
constexpr std::array<Named<NetworkModel>, 5> kOtherNames{{{NetworkModel::ports, "analytical", {}},
                                                          {NetworkModel::fifo, "message", {}},
                                                          {NetworkModel::fifo, "messages", {}},
                                                          {NetworkModel::flow, "fair", {}},
                                                          {NetworkModel::flow, "max-min", {}}}};

std::string meant(const std::string& name) {
  for (const Named<NetworkModel>& other : kOtherNames) {
    if (other.name == name) {
      return " (did you mean '" + std::string(name_of(other.value)) + "'?)";
    }
  }
  return did_you_mean(name, names_of<NetworkModel>());
}

}  // namespace

void NetworkFlag::declare(Options& options) {
  options.value("--network", name_, "MODEL",
                all_names<NetworkModel>() + " (`orrery list networks`); default ports");
}

NetworkModel NetworkFlag::read(Error& mistakes) const {
  return name_ ? network_named("--network", *name_, mistakes) : NetworkModel::ports;
}

NetworkModel network_named(const std::string& flag, const std::string& name, Error& mistakes) {
  const auto model = value_of<NetworkModel>(name);
  if (!model) {
    mistakes.add(wrong_value(flag, name, "one of " + all_names<NetworkModel>() + meant(name)));
  }
  return model.value_or(NetworkModel::ports);
}

}  // namespace orrery
