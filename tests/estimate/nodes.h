// SPDX-License-Identifier: Apache-2.0
/// Templates of nodes that a test states, and a run of one alone.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/node_run.h"
#include "estimate/timed_workload.h"

namespace orrery::testing {

/// `after[i]`: the nodes that node i waits for.
inline estimate::TimedTemplate template_of(const std::vector<estimate::TimedNode>& nodes,
                                           const std::vector<std::vector<std::uint32_t>>& after) {
  estimate::TimedTemplate made;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    estimate::TimedNode node = nodes[i];
    node.first_before = static_cast<std::uint32_t>(made.before.size());
    node.befores = static_cast<std::uint32_t>(after[i].size());
    made.before.insert(made.before.end(), after[i].begin(), after[i].end());
    made.nodes.push_back(node);
  }
  return made;
}

/// Nothing comes and nothing is said.
class Nobody final : public estimate::Listener {
 public:
  Time hears(const estimate::TimedNode&) override { return estimate::kNever; }
  Time says(const estimate::TimedNode&, Time, Time end) override { return end; }
};

}  // namespace orrery::testing
