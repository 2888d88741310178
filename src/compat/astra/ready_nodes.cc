// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/ready_nodes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace orrery::astra {

Slot slot_of(const chakra::Node& node, bool replay) {
  using chakra::NodeType;
  if (node.type == NodeType::invalid || node.type == NodeType::metadata) {
    return Slot::none;
  }
  if (node.on_cpu) {
    return Slot::cpu;
  }
  if (node.type == NodeType::comp) {
    return Slot::compute;
  }
  return node.type == NodeType::comm_recv && !replay ? Slot::none : Slot::communication;
}

Successors::Successors(const chakra::Program& program) : first(program.nodes.size() + 1, 0) {
  for (std::uint32_t before : program.dependencies) {
    ++first[before + 1];
  }
  for (std::size_t i = 1; i < first.size(); ++i) {
    first[i] += first[i - 1];
  }
  nodes.resize(program.dependencies.size());
  std::vector<std::uint32_t> place(first.begin(), first.end() - 1);
  for (std::uint32_t node = 0; node < program.nodes.size(); ++node) {
    const chakra::Node& of = program.nodes[node];
    for (std::uint32_t i = 0; i < of.dependencies; ++i) {
      nodes[place[program.dependencies[of.first_dependency + i]]++] = node;
    }
  }
}

ReadyNodes::ReadyNodes(const std::vector<chakra::Program>& programs,
                       std::vector<std::uint32_t> program_of, const Options& options)
    : programs_(programs), program_of_(std::move(program_of)), options_(options) {
  for (const chakra::Program& program : programs_) {
    successors_.emplace_back(program);
  }
  std::size_t nodes = 0;
  for (std::uint32_t program : program_of_) {
    first_node_.push_back(nodes);
    left_.push_back(static_cast<std::uint32_t>(programs_[program].nodes.size()));
    nodes += programs_[program].nodes.size();
  }
  unfinished_ = nodes;
  states_.reserve(nodes);
  ranks_.resize(program_of_.size());
  for (std::uint32_t rank = 0; rank < program_of_.size(); ++rank) {
    const std::vector<chakra::Node>& all = programs_[program_of_[rank]].nodes;
    for (std::uint32_t node = 0; node < all.size(); ++node) {
      const std::uint32_t waits = all[node].dependencies;
      if (waits >= kMany) {
        many_[states_.size()] = waits;
      }
      states_.push_back({static_cast<std::uint16_t>(std::min(waits, kMany) & kDone),
                         static_cast<std::uint16_t>(static_cast<unsigned>(slot(all[node])) & 3U)});
      if (all[node].dependencies == 0) {
        add(rank, node);
      }
    }
  }
}

Slot ReadyNodes::slot(const chakra::Node& node) const {
  const Slot own = slot_of(node, options_.replay);
  return own == Slot::communication && !options_.one_communication ? Slot::none : own;
}

void ReadyNodes::add(std::uint32_t rank, std::uint32_t node) {
  std::vector<std::uint32_t>& heap = ranks_[rank].ready[state(rank, node).slot];
  heap.push_back(node);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

std::optional<std::uint32_t> ReadyNodes::next(std::uint32_t rank) {
  Rank& at = ranks_[rank];
  std::size_t least = kSlots;
  for (std::size_t s = 0; s < kSlots; ++s) {
    if (!at.ready[s].empty() && !at.busy[s] &&
        (least == kSlots || at.ready[s].front() < at.ready[least].front())) {
      least = s;
    }
  }
  if (least == kSlots) {
    return std::nullopt;
  }
  std::vector<std::uint32_t>& heap = at.ready[least];
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const std::uint32_t node = heap.back();
  heap.pop_back();
  at.busy[least] = least != static_cast<std::size_t>(Slot::none);
  return node;
}

void ReadyNodes::complete(std::uint32_t rank, std::uint32_t node) {
  State* const own = &state(rank, 0);
  ranks_[rank].busy[own[node].slot] = false;
  own[node].waiting_for = kDone;
  --left_[rank];
  --unfinished_;
  const Successors& after = successors_[program_of_[rank]];
  for (std::uint32_t i = after.first[node]; i < after.first[node + 1]; ++i) {
    if (release(own[after.nodes[i]])) {
      add(rank, after.nodes[i]);
    }
  }
}

bool ReadyNodes::release(State& waiting) {
  if (waiting.waiting_for == kMany) {
    std::uint32_t& left = many_.at(static_cast<std::size_t>(&waiting - states_.data()));
    if (--left >= kMany) {
      return false;
    }
  }
  return --waiting.waiting_for == 0;
}

std::vector<std::uint32_t> ReadyNodes::stuck(std::uint32_t rank) const {
  std::vector<std::uint32_t> nodes;
  const std::size_t count = programs_[program_of_[rank]].nodes.size();
  for (std::uint32_t node = 0; node < count; ++node) {
    if (states_[first_node_[rank] + node].waiting_for == 0) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

}  // namespace orrery::astra
