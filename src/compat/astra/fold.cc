// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/fold.h"

#include <fmt/format.h>

#include "compat/astra/node_time.h"

namespace orrery::astra {
namespace {

bool has_own_groups(const chakra::TraceSet& traces, const chakra::Node& node) {
  return node.group != chakra::kWorldSlot &&
         static_cast<std::int64_t>(traces.groups[traces.group(0, node.group)].ranks.size()) !=
             traces.ranks();
}

/// What sets the node apart from the same node of another rank.
std::string asymmetry(const RunInput& input, const RunOptions& options, std::uint32_t index,
                      Communicators& communicators, const Planner& planner) {
  const chakra::Node& node = input.traces.programs[0].nodes[index];
  switch (issue_of(node, input.system.replay_only, options.quirks)) {
    case Issue::nothing:
    case Issue::timed:
      return {};
    case Issue::memory: {
      const bool shared = input.memory.kind == RemoteMemoryKind::per_node ||
                          input.memory.kind == RemoteMemoryKind::pool;
      return shared ? "ranks wait for each other at shared remote memory" : "";
    }
    case Issue::send:
    case Issue::receive:
      return "messages between single ranks";
    case Issue::collective:
      break;
  }
  if (has_own_groups(input.traces, node)) {
    return "groups of some ranks";
  }
  const Communicators::Membership line = communicators.find(0, communicators.kind(0, index));
  return planner.symmetric(communicators.shape_of(line.communicator),
                           phase_type_of(node.collective))
             ? ""
             : "an algorithm in which ranks have different parts (a tree, or a ring through "
               "several "
               "dimensions)";
}

}  // namespace

std::vector<std::string> reasons_against_folding(const RunInput& input, const RunOptions& options,
                                                 Communicators& communicators,
                                                 const Planner& planner) {
  if (input.traces.programs.size() > 1) {
    return {fmt::format("{} different programs", input.traces.programs.size())};
  }
  if (options.backend == Backend::aware) {
    return {"links that serve one message at a time"};
  }
  const std::vector<chakra::Node>& nodes = input.traces.programs[0].nodes;
  for (std::uint32_t index = 0; index < nodes.size(); ++index) {
    std::string reason = asymmetry(input, options, index, communicators, planner);
    if (!reason.empty()) {
      return {std::move(reason)};
    }
  }
  return {};
}

}  // namespace orrery::astra
