// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/statistics.h"

#include <fmt/format.h>

#include <set>

namespace orrery::chakra {
namespace {

template <class T>
std::int64_t held(const std::vector<T>& list) {
  return static_cast<std::int64_t>(list.capacity() * sizeof(T));
}

}  // namespace

Bytes bytes_of(const Program& program) {
  return Bytes(static_cast<std::int64_t>(sizeof program + program.names.size()) +
               held(program.nodes) + held(program.dependencies));
}

Bytes bytes_of(const TraceSet& traces) {
  std::int64_t bytes = static_cast<std::int64_t>(sizeof traces) + held(traces.program_of) +
                       held(traces.group_slots) + held(traces.first_slot);
  std::set<const char*> names;
  for (const Program& program : traces.programs) {
    const bool fresh = names.insert(program.names.c_str()).second;
    bytes +=
        bytes_of(program).value() - (fresh ? 0 : static_cast<std::int64_t>(program.names.size()));
  }
  for (const Group& group : traces.groups) {
    bytes += static_cast<std::int64_t>(sizeof group + group.name.capacity()) + held(group.ranks);
  }
  return Bytes(bytes);
}

Statistics statistics(const TraceSet& traces) {
  Statistics sum;
  sum.memory = bytes_of(traces);
  sum.programs = static_cast<std::int64_t>(traces.programs.size());
  for (const Program& program : traces.programs) {
    sum.stored_nodes += static_cast<std::int64_t>(program.nodes.size());
  }
  for (const std::uint32_t program : traces.program_of) {
    sum.nodes += static_cast<std::int64_t>(traces.programs[program].nodes.size());
  }
  return sum;
}

double bytes_per_node(const Statistics& statistics) {
  return statistics.nodes == 0 ? 0
                               : static_cast<double>(statistics.memory.value()) /
                                     static_cast<double>(statistics.nodes);
}

std::string to_string(const Statistics& statistics) {
  return fmt::format("{} nodes as {} of {} {}, {:.2g} bytes per node", statistics.nodes,
                     statistics.stored_nodes, statistics.programs,
                     statistics.programs == 1 ? "program" : "programs", bytes_per_node(statistics));
}

}  // namespace orrery::chakra
