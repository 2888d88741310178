// SPDX-License-Identifier: Apache-2.0
/// Collectives that the user brings: a graph of messages and local work per position in the group,
/// read from Chakra traces or MSCCL's XML.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "compat/astra/config.h"
#include "workload/chakra/trace.h"

namespace orrery::astra {

struct CustomStep {
  /// send: done when delivered. receive: done when posted and arrived. compute: `duration`.
  /// reduce: local reduction of `size`, r(m) = 3 * floor(m / local memory bandwidth).
  enum class Kind : std::uint8_t { send, receive, compute, reduce };

  Kind kind = Kind::send;
  std::int64_t peer = 0;   ///< of messages: the other's position in the group
  std::uint32_t tag = 0;   ///< messages match by (tag, source, destination), in order
  std::int64_t parts = 0;  ///< of CustomCollective::parts; unused when that is 0
  Bytes size{0};           ///< when CustomCollective::parts is 0
  Time duration{0};
  std::uint32_t first_dependency = 0;  ///< into CustomProgram::dependencies
  std::uint32_t dependencies = 0;
  friend bool operator==(const CustomStep&, const CustomStep&) = default;
};

/// A CustomProgram is what one position does. A step starts when the steps that it depends on are
/// done; steps that are ready at once start in order.
struct CustomProgram {
  std::vector<CustomStep> steps;
  std::vector<std::uint32_t> dependencies;  ///< positions in `steps`, always smaller ones
  friend bool operator==(const CustomProgram&, const CustomProgram&) = default;
};

struct CustomCollective {
  std::string name;                    ///< the file or prefix that it came from, for messages
  std::optional<Operation> operation;  ///< what the file says that it does, if it does
  /// The number of parts into which the buffer is cut (all-gather: the gathered buffer). 0: sizes
  /// stand in the steps and the workload's size does not count, as for Chakra traces in ASTRA-sim.
  std::int64_t parts = 0;
  /// The endpoint delay applies as in native algorithms: once before the first step and once after
  /// each reception. Off for Chakra traces, as in ASTRA-sim.
  bool endpoint_delay = false;
  std::vector<CustomProgram> programs;  ///< by position in the group
  friend bool operator==(const CustomCollective&, const CustomCollective&) = default;
};

/// Returns the bytes of a message or reduction when the buffer has `buffer` bytes.
inline Bytes size_of(const CustomStep& step, const CustomCollective& collective, Bytes buffer) {
  return collective.parts == 0 ? step.size : Bytes(buffer.value() / collective.parts) * step.parts;
}

/// The custom collectives of a run. A node's own goes before that of its operation; without either
/// the native algorithms apply.
struct CustomCollectives {
  std::vector<CustomCollective> all;
  std::array<std::optional<std::uint32_t>, kOperationCount> by_operation;  ///< into `all`
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_node;  ///< node id, into `all`; ascending

  const CustomCollective* find(Operation operation, std::uint64_t node_id) const;
  /// Returns the same for a collective of a program; none for collectives that no list governs.
  const CustomCollective* find(const chakra::Node& node) const;
};

/// Returns the operation whose implementation list a collective takes; none for those that no list
/// governs.
std::optional<Operation> operation_of(chakra::CollectiveType type);

/// Returns the steps in an order in which each comes after its dependencies, smaller ones first
/// where there is a choice; none when they go round in a circle.
std::optional<std::vector<std::uint32_t>> dependency_order(
    const std::vector<std::vector<std::uint32_t>>& dependencies);

/// Peers exist, and every message has its send and its receive with one size.
Result<void> check_messages(const CustomCollective& collective);

/// Returns one program per rank of the traces. A mistake: other nodes than COMM_SEND, COMM_RECV and
/// COMP.
Result<CustomCollective> custom_from_traces(const chakra::TraceSet& traces,
                                            const std::string& name);

/// Reads what `system` names: System::custom and custom_by_node. Each is the prefix of Chakra
/// traces PREFIX.<position>.et of any number of positions from 0, or an MSCCL program (.xml, see
/// msccl.h). Relative paths start at the working directory, as in ASTRA-sim, or else at `folder`.
Result<CustomCollectives> load_customs(const System& system, const std::string& folder);

}  // namespace orrery::astra
