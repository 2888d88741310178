// SPDX-License-Identifier: Apache-2.0
/// Small random systems and programs for property tests.
#pragma once

#include <fmt/format.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "compat/astra/run.h"

namespace orrery::astra {

inline std::int64_t pick(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}
template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

/// Appends a node that depends on up to two earlier ones.
inline void append_random(chakra::Program& program, chakra::Node node) {
  node.id = program.nodes.size();
  node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  const auto count = static_cast<std::int64_t>(program.nodes.size());
  std::int64_t last = -1;
  for (int i = 0; i < 2 && count > 0; ++i) {
    const std::int64_t before = pick(0, count - 1);
    if (before != last && pick(0, 2) > 0) {
      program.dependencies.push_back(static_cast<std::uint32_t>(before));
      ++node.dependencies;
      last = before;
    }
  }
  program.nodes.push_back(node);
}

inline chakra::Node random_compute() {
  chakra::Node node;
  node.type = chakra::NodeType::comp;
  node.duration = Time(pick(0, 20) * 1000);
  node.on_cpu = pick(0, 4) == 0;
  return node;
}

inline chakra::Node random_collective(int dimensions) {
  using chakra::CollectiveType;
  chakra::Node node;
  node.type = chakra::NodeType::comm_coll;
  node.collective = one_of({CollectiveType::all_reduce, CollectiveType::all_gather,
                            CollectiveType::reduce_scatter, CollectiveType::all_to_all});
  node.size = Bytes(one_of<std::int64_t>({0, 1, 1000, 65536, 100000, 1048576}));
  node.has_size = true;
  node.has_involved = pick(0, 1) == 1;
  node.involved = static_cast<std::uint32_t>(pick(0, (1 << dimensions) - 1));
  node.involved_entries = static_cast<std::uint8_t>(dimensions);
  node.priority = static_cast<std::int32_t>(pick(0, 2));
  return node;
}

inline std::vector<Dimension> random_network(int most_dimensions,
                                             const std::vector<std::int64_t>& sizes) {
  std::vector<Dimension> network;
  for (std::int64_t i = pick(1, most_dimensions); i > 0; --i) {
    network.push_back({one_of({Building::ring, Building::fully_connected, Building::switched}),
                       *rc::gen::elementOf(sizes),
                       Bandwidth(one_of({50.0, 100.0, 333.0}) * 1073741824.0),
                       Time(pick(0, 3) * 250'000)});
  }
  return network;
}

inline System random_system(std::size_t dimensions, const std::vector<Algorithm>& algorithms) {
  System system;
  system.policy = one_of({Policy::lifo, Policy::fifo, Policy::explicit_priority});
  system.endpoint_delay = Time(one_of<std::int64_t>({0, 10, 700}) * 1000);
  system.splits = pick(1, 5);
  system.active_chunks = pick(1, 3);
  system.local_bandwidth_aware = pick(0, 1) == 1;
  system.inter_dimension =
      one_of({InterDimension::ascending, InterDimension::themis, InterDimension::round_robin});
  system.intra_dimension = one_of({IntraDimension::fifo, IntraDimension::smallest_chunk_first});
  if (pick(0, 1) == 1) {
    system.local_memory_bandwidth = Bandwidth(one_of({50e9, 1600e9}));
  }
  for (auto& list : system.implementation) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      list.push_back({*rc::gen::elementOf(algorithms), pick(0, 3)});
    }
  }
  return system;
}

/// All ranks run one program of computation and world collectives.
inline RunInput random_input(const std::vector<std::int64_t>& sizes,
                             const std::vector<Algorithm>& algorithms) {
  RunInput input;
  input.network = random_network(3, sizes);
  input.system = random_system(input.network.size(), algorithms);
  std::int64_t ranks = 1;
  for (const Dimension& dimension : input.network) {
    ranks *= dimension.size;
  }
  input.traces.groups.emplace_back();
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  chakra::Program program;
  program.names = std::string(1, '\0');
  for (std::int64_t i = pick(1, 6); i > 0; --i) {
    append_random(program, pick(0, 2) == 0
                               ? random_compute()
                               : random_collective(static_cast<int>(input.network.size())));
  }
  input.traces.programs.push_back(std::move(program));
  return input;
}

/// Ranks in stages with a program each: computation of different length, messages to the same rank
/// of the next stage, collectives of the world, its lines, and of groups that cut the world in
/// blocks or in strides. Mostly one after the other.
class RandomStages {
 public:
  explicit RandomStages(RunInput& input) : input_(input), ranks_(input.traces.ranks()) {
    const std::int64_t stages = one_of<std::int64_t>({1, 2, ranks_});
    stages_ = ranks_ % stages == 0 ? stages : 1;
    input_.traces.programs.assign(static_cast<std::size_t>(stages_), {});
    slots_.resize(static_cast<std::size_t>(ranks_));
  }

  void fill() {
    chained_ = pick(0, 3) > 0;
    for (std::int64_t i = pick(1, 5); i > 0; --i) {
      switch (pick(0, 3)) {
        case 0:
          everywhere([](std::int64_t) { return random_compute(); });
          break;
        case 1: {
          const chakra::Node node = random_collective(static_cast<int>(input_.network.size()));
          everywhere([&](std::int64_t) { return node; });
          break;
        }
        case 2:
          add_groups();
          break;
        default:
          add_messages(static_cast<std::uint32_t>(i));
      }
    }
    finish();
  }

 private:
  template <class Make>
  void everywhere(const Make& make) {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      append(stage, make(stage));
    }
  }
  void append(std::int64_t stage, chakra::Node node) {
    chakra::Program& program = input_.traces.programs[static_cast<std::size_t>(stage)];
    node.id = program.nodes.size();
    node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    if (chained_ && !program.nodes.empty()) {
      node.dependencies = 1;
      program.dependencies.push_back(static_cast<std::uint32_t>(program.nodes.size() - 1));
    }
    program.nodes.push_back(node);
  }
  void add_groups() {
    const std::int64_t size = one_of<std::int64_t>({1, 2, ranks_ / 2, ranks_});
    const std::int64_t count = size > 0 && ranks_ % size == 0 ? ranks_ / size : 1;
    const bool blocks = pick(0, 1) == 1;
    const auto first = input_.traces.groups.size();
    for (std::int64_t group = 0; group < count; ++group) {
      chakra::Group made;
      made.name = std::to_string(first + static_cast<std::size_t>(group));
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        if ((blocks ? rank / (ranks_ / count) : rank % count) == group) {
          made.ranks.push_back(rank);
          slots_[static_cast<std::size_t>(rank)].push_back(
              static_cast<std::uint32_t>(first + static_cast<std::size_t>(group)));
        }
      }
      input_.traces.groups.push_back(made);
    }
    chakra::Node node = random_collective(1);
    node.has_involved = false;
    node.group = ++groups_;
    everywhere([&](std::int64_t) { return node; });
  }
  void add_messages(std::uint32_t tag) {
    const std::int64_t offset = ranks_ / stages_;
    chakra::Node node;
    node.tag = tag;
    node.size = Bytes(pick(1, 1 << 20));
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      if (stage > 0) {
        node.type = chakra::NodeType::comm_recv;
        node.peer = -offset;
        append(stage, node);
      }
      if (stage + 1 < stages_) {
        node.type = chakra::NodeType::comm_send;
        node.peer = offset;
        append(stage, node);
      }
    }
  }
  void finish() {
    chakra::TraceSet& traces = input_.traces;
    for (chakra::Program& program : traces.programs) {
      program.names = std::string(1, '\0');
    }
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      traces.program_of[at] = static_cast<std::uint32_t>(rank / (ranks_ / stages_));
      traces.first_slot.push_back(static_cast<std::uint32_t>(traces.group_slots.size()));
      traces.group_slots.insert(traces.group_slots.end(), slots_[at].begin(), slots_[at].end());
    }
  }

  RunInput& input_;
  std::int64_t ranks_;
  std::int64_t stages_ = 1;
  bool chained_ = true;
  std::uint32_t groups_ = 0;
  std::vector<std::vector<std::uint32_t>> slots_;  ///< by rank: its groups
};

inline RunInput random_stages(const std::vector<std::int64_t>& sizes,
                              const std::vector<Algorithm>& algorithms) {
  RunInput input;
  input.network = random_network(3, sizes);
  input.system = random_system(input.network.size(), algorithms);
  if (pick(0, 5) == 0) {
    for (auto& list : input.system.implementation) {
      list = {{one_of({Algorithm::one_ring, Algorithm::one_direct}), 0}};
    }
  }
  std::int64_t ranks = 1;
  for (const Dimension& dimension : input.network) {
    ranks *= dimension.size;
  }
  input.traces.groups.emplace_back();
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  RandomStages(input).fill();
  return input;
}

inline RunOptions random_options() {
  RunOptions options;
  for (std::size_t i = 0; i < kQuirkCount; ++i) {
    options.quirks.set(static_cast<Quirk>(i), pick(0, 1) == 1);
  }
  options.queues_per_dimension = pick(1, 3);
  options.rendezvous = pick(0, 3) == 0;
  return options;
}

/// Describes a case for messages of failed properties.
inline std::string describe(const RunInput& input, const RunOptions& options) {
  std::string text = "network";
  for (const Dimension& each : input.network) {
    text +=
        fmt::format(" {}{}({} ns)", name_of(each.building), each.size, each.latency.value() / 1000);
  }
  const System& system = input.system;
  text += fmt::format(
      "\npolicy {} delay {} splits {} active {} aware {} order {} within {} memory {}\n",
      static_cast<int>(system.policy), system.endpoint_delay.value() / 1000, system.splits,
      system.active_chunks, system.local_bandwidth_aware, static_cast<int>(system.inter_dimension),
      static_cast<int>(system.intra_dimension),
      system.local_memory_bandwidth ? system.local_memory_bandwidth->value() : 0);
  for (const auto& list : system.implementation) {
    for (const Implementation& each : list) {
      text += fmt::format(" {}:{}", static_cast<int>(each.algorithm), each.window);
    }
    text += ";";
  }
  text += fmt::format("\nqueues {} rendezvous {} quirks", options.queues_per_dimension,
                      options.rendezvous);
  for (std::size_t i = 0; i < kQuirkCount; ++i) {
    text += options.quirks[static_cast<Quirk>(i)] ? "1" : "0";
  }
  for (const chakra::Program& program : input.traces.programs) {
    text += "\nprogram";
    for (const chakra::Node& node : program.nodes) {
      text += fmt::format(
          "\n {} type {} collective {} size {} duration {} group {} dims {} peer {} "
          "tag {} cpu {} after",
          node.id, static_cast<int>(node.type), static_cast<int>(node.collective),
          node.size.value(), node.duration.value() / 1000, node.group,
          node.has_involved ? static_cast<int>(node.involved) : -1, node.peer, node.tag,
          node.on_cpu);
      for (std::uint32_t i = 0; i < node.dependencies; ++i) {
        text += fmt::format(" {}", program.dependencies[node.first_dependency + i]);
      }
    }
  }
  return text;
}

}  // namespace orrery::astra
