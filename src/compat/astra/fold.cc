// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compat/astra/node_time.h"

namespace orrery::astra {
namespace {

bool has_own_groups(const chakra::TraceSet& traces, const chakra::Node& node) {
  return node.group != chakra::kWorldSlot &&
         static_cast<std::int64_t>(traces.groups[traces.group(0, node.group)].ranks.size()) !=
             traces.ranks();
}

/// Groups that are lines of the network: every rank's consists of all NPUs that differ from it in
/// the same dimensions only. Then they are alike, as lines of the world are.
class LineGroups {
 public:
  LineGroups(Communicators& communicators, std::int64_t ranks)
      : communicators_(communicators), ranks_(ranks), known_(communicators.kinds().size()) {}

  bool operator[](std::uint32_t kind) {
    if (!known_[kind]) {
      known_[kind] = all_alike(kind);
    }
    return *known_[kind];
  }

 private:
  bool all_alike(std::uint32_t kind) {
    const std::uint32_t shape = shape_of(0, kind).id;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      const Shape& own = shape_of(rank, kind);
      const bool line =
          !own.logical && std::all_of(own.axes.begin(), own.axes.end(), [](const Axis& axis) {
            return axis.uniform || axis.size == 1;
          });
      if (!line || own.id != shape) {
        return false;
      }
    }
    return true;
  }
  const Shape& shape_of(std::int64_t rank, std::uint32_t kind) {
    return communicators_.shape_of(communicators_.find(rank, kind).communicator);
  }

  Communicators& communicators_;
  std::int64_t ranks_;
  std::vector<std::optional<bool>> known_;  ///< by kind
};

/// Returns what sets the node apart from the same node of another rank.
std::string asymmetry(const RunInput& input, const RunOptions& options, std::uint32_t index,
                      Communicators& communicators, const Planner& planner, LineGroups& lines) {
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
  if (input.customs.find(node) != nullptr) {
    return "custom collectives, in which ranks may have different parts";
  }
  if (has_own_groups(input.traces, node) && !lines[communicators.kind(0, index)]) {
    return "groups of some ranks";
  }
  const Communicators::Membership line = communicators.find(0, communicators.kind(0, index));
  const Shape& shape = communicators.shape_of(line.communicator);
  const PhaseType type = phase_type_of(node.collective);
  if (!planner.symmetric(shape, type)) {
    return "an algorithm in which ranks have different parts (a tree, or a ring through several "
           "dimensions)";
  }
  return options.backend == Backend::aware && !planner.one_sender_per_link(shape, type)
             ? "messages of several ranks that meet on links of a ring"
             : "";
}

/// Returns whether one communicator, of all ranks, runs it.
bool is_of_all(const RunInput& input, const chakra::Node& node) {
  if (node.group != chakra::kWorldSlot) {
    return input.traces.programs.size() == 1 && !has_own_groups(input.traces, node);
  }
  for (std::size_t d = 0; node.has_involved && d < input.network.size(); ++d) {
    if (input.network[d].size > 1 && (node.involved >> d & 1U) == 0) {
      return false;
    }
  }
  return true;
}

/// Themis (but for its right form) keeps loads for all ranks and plans a collective of a
/// communicator when the first of its ranks issues it: which one that is depends on the rank.
std::string asymmetry_of_loads(const RunInput& input, const RunOptions& options) {
  if (input.system.inter_dimension != InterDimension::themis ||
      !options.quirks[Quirk::themis_link_bandwidth]) {
    return {};
  }
  for (const chakra::Program& program : input.traces.programs) {
    int plans = 0;
    for (const chakra::Node& node : program.nodes) {
      if (issue_of(node, input.system.replay_only, options.quirks) == Issue::collective) {
        plans += is_of_all(input, node) ? 1 : 2;  // 2: several, one for each communicator
      }
    }
    if (plans > 1) {
      return "several collectives under Themis, planned by whichever rank comes first";
    }
  }
  return {};
}

/// Links that serve messages one by one give every rank the same times if no two messages ever want
/// one at the same instant (their order would depend on the rank): one chunk at a time in a
/// dimension, whose steps follow each other, and a link for every dimension and port.
std::string asymmetry_of_links(const RunInput& input, const RunOptions& options) {
  if (input.system.active_chunks > 1 || options.queues_per_dimension > 1 || options.rendezvous) {
    return "chunks, or ready messages, that share the links of a dimension at one time";
  }
  return {};
}

}  // namespace

std::vector<std::string> reasons_against_folding(const RunInput& input, const RunOptions& options,
                                                 Communicators& communicators,
                                                 const Planner& planner) {
  if (input.traces.programs.size() > 1) {
    return {fmt::format("{} different programs", input.traces.programs.size())};
  }
  if (std::string reason = asymmetry_of_loads(input, options); !reason.empty()) {
    return {std::move(reason)};
  }
  if (std::adjacent_find(input.compute_speed.begin(), input.compute_speed.end(),
                         std::not_equal_to<>()) != input.compute_speed.end()) {
    return {"NPUs of different speeds"};
  }
  if (options.backend == Backend::aware) {
    if (std::string reason = asymmetry_of_links(input, options); !reason.empty()) {
      return {std::move(reason)};
    }
  }
  const std::vector<chakra::Node>& nodes = input.traces.programs[0].nodes;
  LineGroups lines(communicators, input.traces.ranks());
  for (std::uint32_t index = 0; index < nodes.size(); ++index) {
    std::string reason = asymmetry(input, options, index, communicators, planner, lines);
    if (!reason.empty()) {
      return {std::move(reason)};
    }
  }
  return {};
}

std::vector<std::string> reasons_against_colours(const RunInput& input, const RunOptions& options) {
  std::vector<std::string> reasons;
  if (options.backend == Backend::aware) {
    reasons.emplace_back("links that serve one message at a time");
  }
  if (const std::string reason = asymmetry_of_loads(input, options); !reason.empty()) {
    reasons.push_back(reason);
  }
  if (options.queues_per_dimension > 1) {
    reasons.emplace_back(
        "queues of a dimension that ranks with different histories take otherwise");
  }
  if (options.traffic) {
    reasons.emplace_back("what each NPU sends");
  }
  if (options.rendezvous) {
    reasons.emplace_back("rendezvous among ranks that do not all do the same");
  }
  if (!input.customs.all.empty()) {
    reasons.emplace_back("custom collectives");
  }
  const bool shared = input.memory.kind == RemoteMemoryKind::per_node ||
                      input.memory.kind == RemoteMemoryKind::pool;
  const bool may_root = !options.quirks[Quirk::one_communication];
  for (const chakra::Program& program : input.traces.programs) {
    for (std::size_t i = 0; (shared || may_root) && i < program.nodes.size(); ++i) {
      const chakra::Node& node = program.nodes[i];
      const Issue issue = issue_of(node, input.system.replay_only, options.quirks);
      if (shared && issue == Issue::memory) {
        reasons.emplace_back("ranks wait for each other at shared remote memory");
        return reasons;
      }
      if (issue == Issue::collective && Planner::rooted(phase_type_of(node.collective))) {
        reasons.emplace_back("collectives with a root, whose senders wait for their receivers");
        return reasons;
      }
    }
  }
  return reasons;
}

}  // namespace orrery::astra
