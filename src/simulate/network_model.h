// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/listed_names.h"
#include "base/result.h"

namespace orrery::graph {
struct Workload;
}
namespace orrery::machine {
struct Machine;
}

namespace orrery::simulate {

struct SimulateOptions;
struct Timeline;

/// A network model says how collectives and messages share the network's links
/// (docs/models/network.md). The enumeration names those that the code asks for; others have a row
/// alone.
enum class NetworkModel : std::uint8_t { ports, fifo, flow, flit, packet };

/// A network model as a row: its names, and what runs a workload on it (networks.cc).
struct NetworkRow {
  NetworkModel value{UINT8_MAX};  ///< left out by a model that the code does not name
  std::string_view name;
  std::string_view sentence;                    ///< for help texts
  std::vector<std::string_view> meant_by = {};  ///< what others call it: did you mean ...?
  bool links_change = false;                    ///< links may change while it runs
  bool by_byte = false;                         ///< work grows with the bytes, not the messages
  Result<Timeline> (*run)(const graph::Workload&, const machine::Machine&,
                          const SimulateOptions&) = nullptr;
};

/// Returns all of them: those that the code names in the order of the enumeration, then others by
/// name.
const std::vector<NetworkRow>& networks();

inline const NetworkRow& row_of(NetworkModel model) {
  return networks()[static_cast<std::size_t>(model)];
}

/// Returns the models of this library, and the list that networks() puts in order: these, unless a
/// program that links it defines a network_list() of its own.
std::vector<NetworkRow> shipped_networks();
std::vector<NetworkRow> network_list();

constexpr ListedNames<NetworkModel> named_values(NetworkModel /*any*/) {
  return {};
}
const std::vector<Named<NetworkModel>>& listed_values(NetworkModel any);

}  // namespace orrery::simulate
