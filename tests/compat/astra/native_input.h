// SPDX-License-Identifier: Apache-2.0
/// Small traces on small networks for the tests of the native semantics.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compat/astra/native.h"
#include "compat/astra/run.h"

namespace orrery::astra::native_tests {

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

/// Every rank runs `nodes`.
inline RunInput input_of(std::vector<Dimension> network, Algorithm algorithm,
                         std::vector<chakra::Node> nodes) {
  RunInput input;
  input.network = std::move(network);
  std::int64_t ranks = 1;
  for (const Dimension& d : input.network) {
    ranks *= d.size;
  }
  input.system.endpoint_delay = Time(0);
  for (auto& list : input.system.implementation) {
    list.assign(input.network.size(), {algorithm, 0});
  }
  input.traces.programs.resize(1);
  input.traces.programs[0].nodes = std::move(nodes);
  input.traces.programs[0].names = std::string(1, '\0');
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  input.traces.groups.resize(1);
  return input;
}

inline RunOptions native(const RunInput& input) {
  RunOptions options;
  options.quirks = Quirks::none();
  options.native = NativeNetworkOptions{.dimensions = native_dimensions(input.network)};
  return options;
}

inline RunResult run_native(const RunInput& input, const RunOptions& options) {
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

inline Time native_time(const RunInput& input) {
  return last(run_native(input, native(input)));
}

}  // namespace orrery::astra::native_tests
