// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/node_time.h"

#include <algorithm>
#include <limits>

#include "compat/astra/wires.h"

namespace orrery::astra {

Issue issue_of(const chakra::Node& node, bool replay, const Quirks& quirks) {
  using chakra::NodeType;
  const bool nothing = node.type == NodeType::invalid || node.type == NodeType::metadata;
  if (nothing || replay) {
    return nothing ? Issue::nothing : Issue::timed;
  }
  if (node.type == NodeType::mem_load || node.type == NodeType::mem_store) {
    return Issue::memory;
  }
  if (node.on_cpu || node.type == NodeType::comp) {
    return Issue::timed;
  }
  if (node.type == NodeType::comm_coll) {
    const bool replayed =
        node.collective == chakra::CollectiveType::broadcast && quirks[Quirk::one_communication];
    return replayed ? Issue::timed : Issue::collective;
  }
  return node.type == NodeType::comm_send ? Issue::send : Issue::receive;
}

namespace {

Time usual_time(const chakra::Node& node, const System& system) {
  const bool modelled =
      node.type == chakra::NodeType::comp && !node.on_cpu && system.roofline && !system.replay_only;
  if (!modelled) {
    return std::max(node.duration, Time(1000));
  }
  double rate = system.peak ? system.peak->value() : std::numeric_limits<double>::infinity();
  const double operations = node.operations.value();
  const auto bytes = static_cast<double>(node.size.value());
  if (system.local_memory_bandwidth && bytes > 0) {
    if (operations == 0) {
      return whole_nanoseconds(node.size, *system.local_memory_bandwidth);
    }
    rate = std::min(rate, system.local_memory_bandwidth->value() * (operations / bytes));
  }
  return whole_nanoseconds(operations / rate * 1e9);
}

}  // namespace

Time node_time(const chakra::Node& node, const System& system, double speed) {
  const Time usual = usual_time(node, system);
  if (speed == 1 || node.on_cpu || node.type != chakra::NodeType::comp) {
    return usual;
  }
  const double nanoseconds = static_cast<double>(usual.value()) / 1e3;
  return std::max(whole_nanoseconds(nanoseconds / speed), Time(1000));
}

PhaseType phase_type_of(chakra::CollectiveType type) {
  using chakra::CollectiveType;
  switch (type) {
    case CollectiveType::all_reduce:
      return PhaseType::all_reduce;
    case CollectiveType::reduce:
      return PhaseType::reduce;
    case CollectiveType::all_gather:
      return PhaseType::all_gather;
    case CollectiveType::gather:
      return PhaseType::gather;
    case CollectiveType::scatter:
      return PhaseType::scatter;
    case CollectiveType::broadcast:
      return PhaseType::broadcast;
    case CollectiveType::all_to_all:
      return PhaseType::all_to_all;
    case CollectiveType::reduce_scatter:
    case CollectiveType::reduce_scatter_block:
      return PhaseType::reduce_scatter;
    case CollectiveType::barrier:
      return PhaseType::barrier;
  }
  return PhaseType::all_reduce;
}

}  // namespace orrery::astra
