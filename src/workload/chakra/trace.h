// SPDX-License-Identifier: Apache-2.0
/// Chakra execution traces as plain values: what each rank does, node by node.
///
/// Ranks that do the same share one `Program`. A program is relative to its rank: the peer of a
/// message is an offset from the own rank, a process group is a slot that every rank fills with a
/// group of its own. So the ranks of a data-parallel run have one program although each names
/// other peers and groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/units.h"

namespace orrery::chakra {

/// Numbers as in the schema (chakra.proto).
enum class NodeType : std::uint8_t {
  invalid,
  metadata,
  mem_load,
  mem_store,
  comp,
  comm_send,
  comm_recv,
  comm_coll
};

enum class CollectiveType : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};

/// Slot of the group of all ranks; slots of other groups count from 1.
inline constexpr std::uint32_t kWorldSlot = 0;

struct Node {
  std::uint64_t id = 0;
  Time duration{0};     ///< duration_micros
  Flops operations{0};  ///< num_ops
  /// comp, mem_load and mem_store: tensor_size. Communication: comm_size, bytes per rank
  /// (all_gather: the input of one rank, others: the whole buffer).
  Bytes size{0};
  std::int64_t peer = 0;  ///< of messages: the other rank minus the own one
  std::uint32_t tag = 0;
  std::int32_t priority = 0;
  std::uint32_t group = kWorldSlot;    ///< slot
  std::uint32_t involved = 0;          ///< bit d: dimension d takes part; see has_involved
  std::uint32_t first_dependency = 0;  ///< into Program::dependencies
  std::uint32_t dependencies = 0;      ///< how many; control and data, no duplicates
  std::uint32_t name = 0;              ///< offset into Program::names
  float beside_collective = 1;  ///< comp: times the duration beside a collective, see record.h
  float beside_message = 1;     ///< and beside a message
  NodeType type = NodeType::invalid;
  CollectiveType collective = CollectiveType::all_reduce;
  bool on_cpu = false;          ///< is_cpu_op
  bool has_operations = false;  ///< num_ops was given
  bool ring_shift = false;      ///< of messages: its rank's part of a shift in `group`
  bool has_size = false;        ///< tensor_size or comm_size was given
  bool has_involved = false;    ///< involved_dim was given; otherwise all dimensions take part
  std::uint8_t involved_entries = 0;  ///< how many dimensions involved_dim speaks of

  friend bool operator==(const Node&, const Node&) = default;
};

struct Program {
  std::vector<Node> nodes;                  ///< ascending id
  std::vector<std::uint32_t> dependencies;  ///< positions in `nodes`
  std::string names;                        ///< each ends with '\0'; equal names are stored once

  std::string_view name_of(const Node& node) const { return names.c_str() + node.name; }
  friend bool operator==(const Program&, const Program&) = default;
};

/// A communicator.
struct Group {
  std::string name;                 ///< "1"; "" for the world
  std::vector<std::int64_t> ranks;  ///< in file order; empty for the world: all
  friend bool operator==(const Group&, const Group&) = default;
};

/// The traces of all ranks.
struct TraceSet {
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of;  ///< by rank
  std::vector<Group> groups;              ///< [0] is the world
  /// Groups of rank r by slot: group_slots[first_slot[r]] is that of slot 1.
  std::vector<std::uint32_t> group_slots;
  std::vector<std::uint32_t> first_slot;  ///< by rank; empty when no rank has groups

  std::int64_t ranks() const { return static_cast<std::int64_t>(program_of.size()); }
  const Program& program(std::int64_t rank) const {
    return programs[program_of[static_cast<std::size_t>(rank)]];
  }
  /// Index into `groups` of what `slot` means to `rank`.
  std::uint32_t group(std::int64_t rank, std::uint32_t slot) const {
    return slot == kWorldSlot ? 0
                              : group_slots[first_slot[static_cast<std::size_t>(rank)] + slot - 1];
  }
  friend bool operator==(const TraceSet&, const TraceSet&) = default;
};

}  // namespace orrery::chakra
