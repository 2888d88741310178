// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/custom.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "base/collect.h"

namespace orrery::astra {
namespace {

using Kind = CustomStep::Kind;

constexpr Time kShortestCompute{1'000};  // ASTRA-sim replays no node in less than a nanosecond

/// A message as one of its ends sees it; both ends must see the same.
struct Message {
  std::int64_t source;
  std::int64_t destination;
  std::uint32_t tag;
  std::int64_t size;  ///< in bytes or parts
  bool operator==(const Message&) const = default;
  bool operator<(const Message& other) const {
    return std::tie(source, destination, tag, size) <
           std::tie(other.source, other.destination, other.tag, other.size);
  }
};

std::string describe(const Message& message, const CustomCollective& collective) {
  return fmt::format("a message of {} {} from {} to {} with tag {}", message.size,
                     collective.parts == 0 ? "bytes" : "parts", message.source, message.destination,
                     message.tag);
}

std::optional<Kind> kind_of(chakra::NodeType type) {
  switch (type) {
    case chakra::NodeType::comm_send:
      return Kind::send;
    case chakra::NodeType::comm_recv:
      return Kind::receive;
    case chakra::NodeType::comp:
      return Kind::compute;
    default:
      return std::nullopt;
  }
}

std::vector<std::vector<std::uint32_t>> dependencies_of(const chakra::Program& program) {
  std::vector<std::vector<std::uint32_t>> all;
  all.reserve(program.nodes.size());
  for (const chakra::Node& node : program.nodes) {
    const auto* const first = program.dependencies.data() + node.first_dependency;
    all.emplace_back(first, first + node.dependencies);
  }
  return all;
}

CustomStep step_of(const chakra::Node& node, Kind kind, std::int64_t position) {
  CustomStep step{.kind = kind, .tag = node.tag, .size = node.size};
  if (kind == Kind::compute) {
    step.duration = std::max(node.duration, kShortestCompute);
    step.size = Bytes(0);
    step.tag = 0;
  } else {
    step.peer = position + node.peer;
  }
  return step;
}

/// Returns the nodes of one rank as steps in an order in which each comes after its dependencies.
CustomProgram program_of(const chakra::Program& traced, std::int64_t position,
                         const std::string& name, Error& mistakes) {
  const std::vector<std::vector<std::uint32_t>> needed = dependencies_of(traced);
  const auto order = dependency_order(needed);
  if (!order) {
    mistakes.add(Error(fmt::format("{}, position {}: dependencies form a cycle", name, position)));
    return {};
  }
  std::vector<std::uint32_t> place(order->size());
  CustomProgram program;
  for (const std::uint32_t at : *order) {
    const chakra::Node& node = traced.nodes[at];
    const auto kind = kind_of(node.type);
    if (!kind) {
      mistakes.add({fmt::format("{}, position {}", name, position), fmt::format("node {}", node.id),
                    fmt::format("type {}", static_cast<int>(node.type)),
                    "COMM_SEND_NODE, COMM_RECV_NODE or COMP_NODE in a custom collective"});
      continue;
    }
    CustomStep step = step_of(node, *kind, position);
    step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    step.dependencies = node.dependencies;
    for (const std::uint32_t dependency : needed[at]) {
      program.dependencies.push_back(place[dependency]);
    }
    place[at] = static_cast<std::uint32_t>(program.steps.size());
    program.steps.push_back(step);
  }
  return program;
}

}  // namespace

const CustomCollective* CustomCollectives::find(Operation operation, std::uint64_t node_id) const {
  const auto node =
      std::lower_bound(by_node.begin(), by_node.end(), std::pair{node_id, std::uint32_t{0}});
  if (node != by_node.end() && node->first == node_id) {
    return &all[node->second];
  }
  const auto& general = by_operation[static_cast<std::size_t>(operation)];
  return general ? &all[*general] : nullptr;
}

const CustomCollective* CustomCollectives::find(const chakra::Node& node) const {
  const auto operation = operation_of(node.collective);
  return operation ? find(*operation, node.id) : nullptr;
}

std::optional<Operation> operation_of(chakra::CollectiveType type) {
  switch (type) {
    case chakra::CollectiveType::all_reduce:
      return Operation::all_reduce;
    case chakra::CollectiveType::all_gather:
      return Operation::all_gather;
    case chakra::CollectiveType::reduce_scatter:
      return Operation::reduce_scatter;
    case chakra::CollectiveType::all_to_all:
      return Operation::all_to_all;
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<std::uint32_t>> dependency_order(
    const std::vector<std::vector<std::uint32_t>>& dependencies) {
  std::vector<std::size_t> missing(dependencies.size());
  std::vector<std::vector<std::uint32_t>> successors(dependencies.size());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t step = 0; step < dependencies.size(); ++step) {
    missing[step] = dependencies[step].size();
    for (const std::uint32_t before : dependencies[step]) {
      successors[before].push_back(step);
    }
    if (missing[step] == 0) {
      ready.push(step);
    }
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t step = ready.top();
    ready.pop();
    order.push_back(step);
    for (const std::uint32_t next : successors[step]) {
      if (--missing[next] == 0) {
        ready.push(next);
      }
    }
  }
  if (order.size() != dependencies.size()) {
    return std::nullopt;
  }
  return order;
}

Result<void> check_messages(const CustomCollective& collective) {
  Error error;
  std::vector<Message> sent;
  std::vector<Message> received;
  const auto positions = static_cast<std::int64_t>(collective.programs.size());
  for (std::int64_t own = 0; own < positions; ++own) {
    const CustomProgram& program = collective.programs[static_cast<std::size_t>(own)];
    for (const CustomStep& step : program.steps) {
      if (step.kind != Kind::send && step.kind != Kind::receive) {
        continue;
      }
      if (step.peer < 0 || step.peer >= positions || step.peer == own) {
        error.add({collective.name, fmt::format("position {}", own), fmt::format("{}", step.peer),
                   fmt::format("another position below {} as peer", positions)});
        continue;
      }
      const std::int64_t size = collective.parts == 0 ? step.size.value() : step.parts;
      if (step.kind == Kind::send) {
        sent.push_back({own, step.peer, step.tag, size});
      } else {
        received.push_back({step.peer, own, step.tag, size});
      }
    }
  }
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  const auto [send, receive] =
      std::mismatch(sent.begin(), sent.end(), received.begin(), received.end());
  if (error.empty() && (send != sent.end() || receive != received.end())) {
    const bool lonely_send = receive == received.end() || (send != sent.end() && *send < *receive);
    error.add({collective.name,
               {},
               describe(lonely_send ? *send : *receive, collective),
               lonely_send ? "a receive for it" : "a send for it"});
  }
  return or_mistakes(std::move(error));
}

Result<CustomCollective> custom_from_traces(const chakra::TraceSet& traces,
                                            const std::string& name) {
  CustomCollective collective;
  collective.name = name;
  Error mistakes;
  for (std::int64_t position = 0; position < traces.ranks(); ++position) {
    collective.programs.push_back(program_of(traces.program(position), position, name, mistakes));
  }
  if (mistakes.empty()) {
    if (auto matched = check_messages(collective); !matched) {
      mistakes = std::move(matched.error());
    }
  }
  return or_mistakes(std::move(collective), std::move(mistakes));
}

}  // namespace orrery::astra
