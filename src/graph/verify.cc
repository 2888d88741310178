// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/workload.h"

namespace orrery {
namespace {

constexpr std::size_t kMostMistakes = 50;  // a generator's bug repeats; the first ones tell

struct Place {
  const Program& program;
  const Template& t;
  std::size_t node = 0;

  std::string text() const {
    return fmt::format("{}, template '{}', node {} '{}'", program.name, t.name, node,
                       t.nodes[node].name);
  }
};

class Mistakes {
 public:
  void add(std::string sentence) {
    if (error_.mistakes.size() < kMostMistakes) {
      error_.add({{}, {}, {}, std::move(sentence)});
    }
  }
  void require(bool ok, const Place& place, std::string_view law) {
    if (!ok) {
      add(fmt::format("{}: {}", place.text(), law));
    }
  }
  bool none() const { return error_.empty(); }
  Result<void> finish() {
    if (error_.empty()) {
      return {};
    }
    return fail(std::move(error_));
  }

 private:
  Error error_;
};

// ---- One node at a time.

bool on_own_stream(const Node& node) {
  switch (node.kind) {
    case Node::Kind::compute:
      return node.stream == Stream::compute;
    case Node::Kind::collective:
      return node.stream == stream_of(node.axis);
    case Node::Kind::send:
      return node.stream == Stream::pp;
    case Node::Kind::receive:
      return node.stream == Stream::receive;
    case Node::Kind::wait:
      return true;
    case Node::Kind::copy:
      return node.stream == Stream::to_host || node.stream == Stream::from_host;
  }
  return false;
}

bool sane(const Operator& op) {
  return op.bytes >= Bytes(0) && !op.bytes.is_overflow() && std::isfinite(op.flops.value()) &&
         op.flops >= Flops(0) && op.kernels >= 0 && op.gemm.batch >= 0 && op.gemm.m >= 0 &&
         op.gemm.n >= 0 && op.gemm.k >= 0;
}

void check_node(const Workload& workload, const Place& place, int role, Mistakes& mistakes) {
  const Node& node = place.t.nodes[place.node];
  const int own = static_cast<int>(place.node);
  const auto earlier = [&](int d) { return d >= 0 && d < own; };
  mistakes.require(std::all_of(node.after.begin(), node.after.end(), earlier), place,
                   "depends on a node that is not earlier in the template");
  mistakes.require(on_own_stream(node), place, "is on a stream that is not its own");
  mistakes.require(std::all_of(node.operators.begin(), node.operators.end(), sane), place,
                   "has an operator with a negative or overflowing size");
  mistakes.require(node.bytes >= Bytes(0) && !node.bytes.is_overflow(), place,
                   "has a negative or overflowing size");
  mistakes.require(node.operators.empty() || node.kind == Node::Kind::compute, place,
                   "has operators but is no compute node");
  const int last = static_cast<int>(workload.programs.size()) - 1;
  if (node.kind == Node::Kind::collective && node.axis == Axis::embedding) {
    mistakes.require(last > 0 && (role == 0 || role == last), place,
                     "is on axis embedding, but not in the first or last of several stages");
  }
  if (node.kind == Node::Kind::send || node.kind == Node::Kind::receive) {
    mistakes.require(last > 0, place, "is a pipeline message, but there is one stage");
  }
}

// ---- Across roles. The members of a tp or dp group share their program, so only messages and
// collectives over pp and embedding can disagree.

struct CollectiveCall {
  CollectiveKind kind;
  Bytes bytes;
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

/// What a role, over its issue list, exchanges with other roles.
struct Traffic {
  std::array<std::vector<Bytes>, kChannelCount> sent;
  std::array<std::vector<Bytes>, kChannelCount> received;
  std::array<std::vector<CollectiveCall>, kAxisCount> collectives;  // of pp and embedding
};

bool between_roles(const Node& node) {
  return node.kind == Node::Kind::send || node.kind == Node::Kind::receive ||
         (node.kind == Node::Kind::collective &&
          (node.axis == Axis::pp || node.axis == Axis::embedding));
}

void record(const Node& node, Traffic& traffic) {
  const auto channel = static_cast<std::size_t>(node.channel);
  if (node.kind == Node::Kind::send) {
    traffic.sent[channel].push_back(node.bytes);
  } else if (node.kind == Node::Kind::receive) {
    traffic.received[channel].push_back(node.bytes);
  } else {
    traffic.collectives[static_cast<std::size_t>(node.axis)].push_back(
        {node.collective, node.bytes});
  }
}

std::vector<std::vector<const Node*>> nodes_between_roles(const Program& program) {
  std::vector<std::vector<const Node*>> nodes(program.templates.size());
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    for (const Node& node : program.templates[t].nodes) {
      if (between_roles(node)) {
        nodes[t].push_back(&node);
      }
    }
  }
  return nodes;
}

Traffic traffic_of(const Workload& workload, int role, Mistakes& mistakes) {
  const Program& program = workload.programs[static_cast<std::size_t>(role)];
  const auto nodes = nodes_between_roles(program);
  Traffic traffic;
  const std::int64_t length = workload.source->length(role);
  for (std::int64_t i = 0; i < length; ++i) {
    const std::optional<Instance> instance = workload.source->issue(role, i);
    if (!instance || instance->template_index < 0 ||
        static_cast<std::size_t>(instance->template_index) >= nodes.size()) {
      mistakes.add(fmt::format("{}: instance {} has {}", program.name, i,
                               instance ? "a template index out of range" : "no template"));
      return traffic;
    }
    for (const Node* node : nodes[static_cast<std::size_t>(instance->template_index)]) {
      record(*node, traffic);
    }
  }
  if (workload.source->issue(role, length)) {
    mistakes.add(
        fmt::format("{}: the issue list goes on after its length {}", program.name, length));
  }
  return traffic;
}

/// Messages of one channel arrive in the order sent, so the i-th receive takes the i-th send.
void check_channel(const Workload& workload, const std::vector<Traffic>& traffic, int sender,
                   Channel channel, Mistakes& mistakes) {
  const int roles = static_cast<int>(traffic.size());
  const auto receiver = static_cast<int>(target_stage(channel, sender, roles));
  const auto c = static_cast<std::size_t>(channel);
  const auto& sent = traffic[static_cast<std::size_t>(sender)].sent[c];
  const auto& received = traffic[static_cast<std::size_t>(receiver)].received[c];
  const std::string& from = workload.programs[static_cast<std::size_t>(sender)].name;
  const std::string& to = workload.programs[static_cast<std::size_t>(receiver)].name;
  const std::string_view name = name_of(channel);
  if (sent.size() != received.size()) {
    mistakes.add(fmt::format("channel {}: {} sends {} messages, {} receives {}", name, from,
                             sent.size(), to, received.size()));
    return;
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i] != received[i]) {
      mistakes.add(fmt::format("channel {}: message {} from {} to {} has {} bytes, its receive {}",
                               name, i, from, to, sent[i].value(), received[i].value()));
      return;
    }
  }
}

void check_collectives(const Workload& workload, const std::vector<Traffic>& traffic, Axis axis,
                       Mistakes& mistakes) {
  const auto a = static_cast<std::size_t>(axis);
  for (std::size_t role = 1; role < traffic.size(); ++role) {
    if (axis == Axis::embedding && role + 1 != traffic.size()) {
      continue;
    }
    if (traffic[role].collectives[a] != traffic[0].collectives[a]) {
      mistakes.add(
          fmt::format("{} and {} do not issue the same collectives on axis {} in the same "
                      "order",
                      workload.programs[0].name, workload.programs[role].name, name_of(axis)));
    }
  }
}

void check_roles(const Workload& workload, Mistakes& mistakes) {
  std::vector<Traffic> traffic;
  for (std::size_t role = 0; role < workload.programs.size(); ++role) {
    traffic.push_back(traffic_of(workload, static_cast<int>(role), mistakes));
  }
  if (!mistakes.none()) {
    return;
  }
  for (int role = 0; role < static_cast<int>(traffic.size()); ++role) {
    for (const auto& channel : kNames<Channel>) {
      check_channel(workload, traffic, role, channel.value, mistakes);
    }
  }
  check_collectives(workload, traffic, Axis::pp, mistakes);
  check_collectives(workload, traffic, Axis::embedding, mistakes);
}

void check_layout(const Workload& workload, Mistakes& mistakes) {
  std::array<int, kAxisCount> seen{};
  for (const RankLayout::Entry& entry : workload.layout.axes) {
    const bool of_layout = entry.axis == Axis::tp || entry.axis == Axis::cp ||
                           entry.axis == Axis::dp || entry.axis == Axis::pp;
    if (!of_layout || entry.size < 1) {
      mistakes.add(fmt::format("layout: axis {} of size {}", name_of(entry.axis), entry.size));
    }
    if (++seen[static_cast<std::size_t>(entry.axis)] == 2) {
      mistakes.add(fmt::format("layout: axis {} stands twice", name_of(entry.axis)));
    }
  }
  const auto roles = static_cast<std::int64_t>(workload.programs.size());
  if (workload.layout.size(Axis::pp) != roles) {
    mistakes.add(
        fmt::format("{} programs for {} pipeline stages", roles, workload.layout.size(Axis::pp)));
  }
  if (workload.source == nullptr) {
    mistakes.add("the workload has no source");
  }
}

}  // namespace

Result<void> verify(const Workload& workload) {
  Mistakes mistakes;
  check_layout(workload, mistakes);
  for (std::size_t role = 0; role < workload.programs.size(); ++role) {
    const Program& program = workload.programs[role];
    for (const Template& t : program.templates) {
      for (std::size_t n = 0; n < t.nodes.size(); ++n) {
        check_node(workload, {program, t, n}, static_cast<int>(role), mistakes);
      }
    }
  }
  if (mistakes.none()) {
    check_roles(workload, mistakes);
  }
  return mistakes.finish();
}

}  // namespace orrery
