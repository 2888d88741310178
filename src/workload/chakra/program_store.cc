// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/program_store.h"

#include "workload/chakra/name_table.h"

namespace orrery::chakra {
namespace {

/// Returns the hash of what tells nodes apart; the rest follows or is compared anyway.
std::uint64_t hash_node(std::uint64_t hash, const Node& node) {
  hash = hash_mix(hash, node.id ^ (std::uint64_t{node.name} << 32));
  hash = hash_mix(hash, static_cast<std::uint64_t>(node.duration.value()));
  hash = hash_mix(hash, static_cast<std::uint64_t>(node.size.value()));
  hash = hash_mix(hash, static_cast<std::uint64_t>(node.peer));
  return hash_mix(hash, node.tag ^ (std::uint64_t{node.group} << 32) ^
                            (static_cast<std::uint64_t>(node.type) << 56) ^
                            (static_cast<std::uint64_t>(node.collective) << 48));
}

}  // namespace

std::uint64_t hash_of(const Program& program) {
  std::uint64_t hash = hash_bytes(program.names);
  for (const Node& node : program.nodes) {
    hash = hash_node(hash, node);
  }
  const auto& dependencies = program.dependencies;
  return hash_bytes({reinterpret_cast<const char*>(dependencies.data()),
                     dependencies.size() * sizeof dependencies[0]},
                    hash);
}

std::uint32_t ProgramStore::store(const Program& program) {
  const std::uint64_t hash = hash_of(program);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (programs_[at->second] == program) {
      return at->second;
    }
  }
  const auto index = static_cast<std::uint32_t>(programs_.size());
  Program& copy = programs_.emplace_back();
  // From iterators: a copy assignment could take over spare capacity.
  copy.nodes = std::vector<Node>(program.nodes.begin(), program.nodes.end());
  copy.dependencies =
      std::vector<std::uint32_t>(program.dependencies.begin(), program.dependencies.end());
  copy.names = *names_.insert(program.names).first;
  by_hash_.emplace(hash, index);
  return index;
}

}  // namespace orrery::chakra
