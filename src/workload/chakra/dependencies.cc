// SPDX-License-Identifier: Apache-2.0
/// ProgramBuilder's second half: order by id, dependencies as positions.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workload/chakra/program_builder.h"

namespace orrery::chakra {
namespace {

std::string label(const Program& program, const Node& node) {
  return node_label(node.id, program.name_of(node));
}

}  // namespace

/// Sorts nodes by ascending id, and slots, names and own ranks with them. The sort is stable, so
/// that of nodes with one id the first stays first.
void ProgramBuilder::sort() {
  std::vector<Node>& nodes = trace_.program.nodes;
  std::vector<std::uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return nodes[a].id < nodes[b].id; });
  std::vector<std::uint32_t> place(nodes.size());
  std::vector<Node> sorted;
  std::vector<std::uint64_t> wanted;
  std::vector<std::uint64_t> first_wanted;
  NameTable names;
  NameTable groups;
  sorted.reserve(nodes.size());
  wanted.reserve(wanted_.size());
  const std::string& text = names_.text();
  for (const std::uint32_t old : order) {
    Node node = nodes[old];
    place[old] = static_cast<std::uint32_t>(sorted.size());
    node.name = names.offset(names.intern(text.c_str() + node.name));
    if (communicates(node.type) && node.group != kWorldSlot) {
      node.group = groups.intern(groups_[node.group - 1]) + 1;
    }
    sorted.push_back(node);
    const std::uint64_t end = old + 1 < nodes.size() ? first_wanted_[old + 1] : wanted_.size();
    first_wanted.push_back(wanted.size());
    wanted.insert(wanted.end(), wanted_.begin() + static_cast<std::ptrdiff_t>(first_wanted_[old]),
                  wanted_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  for (OwnRank& own : trace_.own_ranks) {
    own.node = place[own.node];
  }
  for (std::uint32_t& node : trace_.messages) {
    node = place[node];
  }
  nodes = std::move(sorted);
  wanted_ = std::move(wanted);
  first_wanted_ = std::move(first_wanted);
  names_ = std::move(names);
  groups_ = std::move(groups);
}

void ProgramBuilder::resolve() {
  Program& program = trace_.program;
  program.names = names_.text();  // labels of mistakes need it
  std::vector<Node>& nodes = program.nodes;
  bool forward = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0 && nodes[i - 1].id == nodes[i].id) {
      mistakes_->add(label(program, nodes[i]) + ": id", std::to_string(nodes[i].id),
                     "an id of its own; it is that of " + label(program, nodes[i - 1]) + " too");
    }
    const std::uint64_t end = i + 1 < nodes.size() ? first_wanted_[i + 1] : wanted_.size();
    if (!find_positions(nodes[i], first_wanted_[i], end - first_wanted_[i])) {
      continue;
    }
    nodes[i].first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    nodes[i].dependencies = static_cast<std::uint32_t>(found_.size());
    forward = forward && (found_.empty() || found_.back() < i);
    program.dependencies.insert(program.dependencies.end(), found_.begin(), found_.end());
  }
  if (!forward && mistakes_->empty()) {
    refuse_cycles();
  }
}

/// found_ = positions of what `node` depends on, ascending, each once.
bool ProgramBuilder::find_positions(const Node& node, std::uint64_t first, std::uint64_t count) {
  found_.clear();
  bool good = true;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::int64_t position = position_of(wanted_[i]);
    if (position < 0 || wanted_[i] == node.id) {
      good = false;
      mistakes_->add(label(trace_.program, node) + ": dependencies", std::to_string(wanted_[i]),
                     position < 0 ? "the id of a node of this file" : "another node than itself");
      continue;
    }
    found_.push_back(static_cast<std::uint32_t>(position));
  }
  if (!std::is_sorted(found_.begin(), found_.end(), std::less_equal<>())) {
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  }
  return good;
}

/// -1 when there is no such node.
std::int64_t ProgramBuilder::position_of(std::uint64_t id) const {
  const std::vector<Node>& nodes = trace_.program.nodes;
  if (nodes.empty() || id < nodes.front().id || id > nodes.back().id) {
    return -1;
  }
  const std::uint64_t guess = id - nodes.front().id;  // ids without gaps, the common case
  if (guess < nodes.size() && nodes[guess].id == id) {
    return static_cast<std::int64_t>(guess);
  }
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), id,
                                   [](const Node& node, std::uint64_t v) { return node.id < v; });
  return at->id == id ? at - nodes.begin() : -1;
}

/// Removes nodes without open dependencies until none is left (Kahn 1962); what stays is in or
/// behind a circle. Following open dependencies from any of it ends in the circle.
void ProgramBuilder::refuse_cycles() {
  const Program& program = trace_.program;
  const std::size_t count = program.nodes.size();
  std::vector<std::uint32_t> open(count);
  std::vector<std::uint32_t> first_dependent(count + 1, 0);
  for (const std::uint32_t before : program.dependencies) {
    ++first_dependent[before + 1];
  }
  std::partial_sum(first_dependent.begin(), first_dependent.end(), first_dependent.begin());
  std::vector<std::uint32_t> next = first_dependent;
  std::vector<std::uint32_t> dependents(program.dependencies.size());
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Node& node = program.nodes[i];
    open[i] = node.dependencies;
    if (open[i] == 0) {
      ready.push_back(i);
    }
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      dependents[next[program.dependencies[node.first_dependency + d]]++] = i;
    }
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (std::uint32_t d = first_dependent[ready[i]]; d < first_dependent[ready[i] + 1]; ++d) {
      if (--open[dependents[d]] == 0) {
        ready.push_back(dependents[d]);
      }
    }
  }
  if (ready.size() < count) {
    report_cycle(open);
  }
}

void ProgramBuilder::report_cycle(const std::vector<std::uint32_t>& open) {
  const Program& program = trace_.program;
  const auto start = std::find_if(open.begin(), open.end(), [](std::uint32_t o) { return o > 0; });
  std::vector<std::uint32_t> path;
  std::vector<bool> visited(open.size(), false);
  auto at = static_cast<std::uint32_t>(start - open.begin());
  while (!visited[at]) {
    visited[at] = true;
    path.push_back(at);
    const Node& node = program.nodes[at];
    const auto first = program.dependencies.begin() + node.first_dependency;
    at = *std::find_if(first, first + node.dependencies,
                       [&](std::uint32_t before) { return open[before] > 0; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string circle = std::to_string(program.nodes[at].id);
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 1; i < std::min(path.size(), kShown); ++i) {
    circle += " -> " + std::to_string(program.nodes[path[i]].id);
  }
  circle += path.size() > kShown ? " -> ..." : " -> " + std::to_string(program.nodes[at].id);
  mistakes_->add(label(program, program.nodes[at]) + ": dependencies", "the circle " + circle,
                 "dependencies that do not come back to their node");
}

}  // namespace orrery::chakra
