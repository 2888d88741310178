// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/check.h"

#include <fmt/format.h>

#include <set>
#include <tuple>
#include <utility>

#include "base/collect.h"
#include "compat/astra/linked_network.h"
#include "compat/astra/node_time.h"

namespace orrery::astra {
namespace {

std::int64_t first_rank_of(const chakra::TraceSet& traces, std::size_t program) {
  for (std::size_t rank = 0; rank < traces.program_of.size(); ++rank) {
    if (traces.program_of[rank] == program) {
      return static_cast<std::int64_t>(rank);
    }
  }
  return -1;
}

Mistake at_node(std::int64_t rank, const chakra::Node& node, std::string sentence) {
  return {fmt::format("rank {}", rank), fmt::format("node {}", node.id), "", std::move(sentence)};
}

std::string missing(const RunInput& input, const RunOptions& options, const chakra::Node& node) {
  switch (issue_of(node, input.system.replay_only, options.quirks)) {
    case Issue::memory:
      return input.memory.kind == RemoteMemoryKind::none
                 ? "remote memory access, but the memory file says NO_MEMORY_EXPANSION"
                 : "";
    case Issue::timed:
      return node.type == chakra::NodeType::comp && !node.on_cpu && input.system.roofline &&
                     !input.system.replay_only && !node.has_operations
                 ? "roofline-enabled, but num_ops is missing"
                 : "";
    case Issue::collective:
      return node.group == chakra::kWorldSlot && node.has_involved &&
                     node.involved_entries < input.network.size()
                 ? fmt::format("involved_dim has {} entries, expected one per dimension, {}",
                               node.involved_entries, input.network.size())
                 : "";
    default:
      return {};
  }
}

bool thrown_by_astra(PhaseType type) {
  return type == PhaseType::reduce || type == PhaseType::gather || type == PhaseType::scatter ||
         type == PhaseType::barrier;
}

}  // namespace

Error check_input(const RunInput& input, const RunOptions& options, const Wires& wires) {
  Error error;
  if (wires.npus() != input.traces.ranks()) {
    error.add(Error(fmt::format("{} ranks of traces: expected {}, as in the network",
                                input.traces.ranks(), wires.npus())));
  }
  if (options.backend == Backend::aware && wires.dimensions() != 1) {
    error.add(Error(fmt::format(
        "{} dimensions: expected one, which is all that the aware back-end has; unaware does any "
        "number",
        wires.dimensions())));
  }
  if (on_links(options.backend) && error.mistakes.empty()) {
    collect(check_linked(options.backend, input.network, options.wires), error);
  }
  if (options.queues_per_dimension < 1) {
    error.add(
        {"", "num-queues-per-dim", std::to_string(options.queues_per_dimension), "at least 1"});
  }
  FileMistakes of_nodes("");
  for (std::size_t program = 0; program < input.traces.programs.size(); ++program) {
    for (const chakra::Node& node : input.traces.programs[program].nodes) {
      if (std::string sentence = missing(input, options, node); !sentence.empty()) {
        of_nodes.add(at_node(first_rank_of(input.traces, program), node, std::move(sentence)));
      }
    }
  }
  error.add(of_nodes.take());
  return error;
}

namespace {

/// Looks at each combination of program, kind of communicator and type once per shape.
class CollectiveCheck {
 public:
  CollectiveCheck(const RunInput& input, const RunOptions& options, Communicators& communicators,
                  const Planner& planner)
      : input_(input), options_(options), communicators_(communicators), planner_(planner) {}

  Error check() {
    for (std::size_t program = 0; program < input_.traces.programs.size(); ++program) {
      const std::int64_t rank = first_rank_of(input_.traces, program);
      const auto& nodes = input_.traces.programs[program].nodes;
      for (std::uint32_t index = 0; rank >= 0 && index < nodes.size(); ++index) {
        if (issue_of(nodes[index], input_.system.replay_only, options_.quirks) ==
            Issue::collective) {
          check_node(rank, static_cast<std::uint32_t>(program), index);
        }
      }
    }
    return error_.take();
  }

 private:
  void check_node(std::int64_t rank, std::uint32_t program, std::uint32_t index) {
    const chakra::Node& node = input_.traces.programs[program].nodes[index];
    const PhaseType type = phase_type_of(node.collective);
    const std::uint32_t kind = communicators_.kind(program, index);
    if (const CustomCollective* const custom = input_.customs.find(node)) {
      check_custom(rank, node, kind, *custom);
      return;
    }
    if (!seen_.insert({program, kind, type}).second) {
      return;
    }
    if (thrown_by_astra(type) && options_.quirks[Quirk::one_communication]) {
      error_.add(at_node(
          rank, node, "ASTRA-sim has no such collective; --quirk one-communication=off does it"));
      return;
    }
    const Communicators::Membership member = communicators_.find(rank, kind);
    if (auto reason = planner_.refuse(communicators_.shape_of(member.communicator), type)) {
      error_.add(at_node(rank, node, *reason));
    }
  }

  void check_custom(std::int64_t rank, const chakra::Node& node, std::uint32_t kind,
                    const CustomCollective& custom) {
    const Communicators::Membership member = communicators_.find(rank, kind);
    const std::int64_t members = communicators_.shape_of(member.communicator).members;
    const auto positions = static_cast<std::int64_t>(custom.programs.size());
    if (positions != members) {
      error_.add(at_node(rank, node,
                         fmt::format("{} has {} positions, the collective {} members", custom.name,
                                     positions, members)));
    }
  }

  const RunInput& input_;
  const RunOptions& options_;
  Communicators& communicators_;
  const Planner& planner_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, PhaseType>> seen_;
  FileMistakes error_{""};
};

}  // namespace

Error check_collectives(const RunInput& input, const RunOptions& options,
                        Communicators& communicators, const Planner& planner) {
  return CollectiveCheck(input, options, communicators, planner).check();
}

}  // namespace orrery::astra
