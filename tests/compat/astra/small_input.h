// SPDX-License-Identifier: Apache-2.0
/// Small traces on small networks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compat/astra/run.h"
#include "compat/astra/wires.h"

namespace orrery::astra::small_tests {

using chakra::CollectiveType;
using chakra::NodeType;

inline constexpr Bytes kMegabyte{1'000'000};

inline Dimension dimension(Building building, std::int64_t size, double gbps,
                           Time latency = 500_ns) {
  return {building, size, Bandwidth(gbps * 1e9), latency};
}

inline chakra::Node collective(std::uint64_t id, CollectiveType type, Bytes size,
                               std::uint32_t slot = 0) {
  chakra::Node node;
  node.id = id;
  node.type = NodeType::comm_coll;
  node.collective = type;
  node.size = size;
  node.has_size = true;
  node.group = slot;
  return node;
}

inline void use(RunInput& input, Algorithm algorithm) {
  for (auto& list : input.system.implementation) {
    list.assign(input.network.size(), {algorithm, 0});
  }
}

/// Lines of dimension `slot` - 1 as groups of every rank, in slots 1 and up.
inline void add_lines(RunInput& input) {
  const Wires wires(input.network);
  const auto dimensions = static_cast<std::uint32_t>(input.network.size());
  std::vector<std::uint32_t> first(static_cast<std::size_t>(wires.npus()) * dimensions, 0);
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const int axis = static_cast<int>(d);
    for (std::int64_t rank = 0; rank < wires.npus(); ++rank) {
      const std::int64_t head = rank - wires.coordinate(rank, axis) * wires.stride(axis);
      if (head == rank) {
        first[static_cast<std::size_t>(rank) * dimensions + d] =
            static_cast<std::uint32_t>(input.traces.groups.size());
        chakra::Group group;
        group.name = std::to_string(input.traces.groups.size());
        for (std::int64_t i = 0; i < wires.size(axis); ++i) {
          group.ranks.push_back(rank + i * wires.stride(axis));
        }
        input.traces.groups.push_back(std::move(group));
      }
      first[static_cast<std::size_t>(rank) * dimensions + d] =
          first[static_cast<std::size_t>(head) * dimensions + d];
    }
  }
  for (std::int64_t rank = 0; rank < wires.npus(); ++rank) {
    input.traces.first_slot.push_back(static_cast<std::uint32_t>(rank) * dimensions);
  }
  input.traces.group_slots = std::move(first);
}

/// Every rank runs `nodes`. Nothing costs time but messages: no endpoint delay, no reductions.
inline RunInput input_of(std::vector<Dimension> network, Algorithm algorithm,
                         std::vector<chakra::Node> nodes) {
  RunInput input;
  input.network = std::move(network);
  std::int64_t ranks = 1;
  for (const Dimension& d : input.network) {
    ranks *= d.size;
  }
  input.system.endpoint_delay = Time(0);
  use(input, algorithm);
  input.traces.programs.resize(1);
  input.traces.programs[0].nodes = std::move(nodes);
  input.traces.programs[0].names = std::string(1, '\0');
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  input.traces.groups.resize(1);
  return input;
}

/// Returns options without quirks; no message delays another.
inline RunOptions quirks_off() {
  RunOptions options;
  options.quirks = Quirks::none();
  return options;
}

inline RunResult run_engine(const RunInput& input, const RunOptions& options) {
  Result<RunResult> result = run(input, options);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? std::move(*result) : RunResult{};
}

inline Time last(const RunResult& result) {
  Time finish{0};
  for (const RunResult::Class& one : result.classes) {
    finish = std::max(finish, one.finish);
  }
  return finish;
}

inline Time engine_time(const RunInput& input, const RunOptions& options = {}) {
  return last(run_engine(input, options));
}

}  // namespace orrery::astra::small_tests
