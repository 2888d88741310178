// SPDX-License-Identifier: Apache-2.0
/// Chakra execution traces as plain values: what each rank does, node by node.
///
/// Ranks that do the same share one `Program`. A program is relative to its rank: the peer of a
/// message is an offset from the own rank, a process group is a slot that every rank fills with a
/// group of its own. So the ranks of a data-parallel run have one program although each names
/// other peers and groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
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

constexpr bool communicates(NodeType type) {
  return type == NodeType::comm_send || type == NodeType::comm_recv || type == NodeType::comm_coll;
}

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

/// 56 bytes, since a trace may have tens of millions: fields in one union are of nodes of different
/// types (`type` says which), and all of them are 0 in a node that has none.
struct Node {
  std::uint64_t id = 0;
  Time duration{0};  ///< duration_micros
  /// comp, mem_load and mem_store: tensor_size. Communication: comm_size, bytes per rank
  /// (all_gather: the input of one rank, others: the whole buffer).
  Bytes size{0};
  union {
    Flops operations{0};    ///< comp: num_ops
    std::int64_t peer;      ///< of messages: the other rank minus the own one
    std::int32_t priority;  ///< of collectives
  };
  union {
    std::uint32_t tag = 0;    ///< of messages
    std::uint32_t involved;   ///< of collectives, bit d: dimension d takes part; see has_involved
    float beside_collective;  ///< comp: longer by this share beside a collective, see record.h
  };
  union {
    std::uint32_t group = kWorldSlot;  ///< slot, of communication
    float beside_message;              ///< comp: longer by this share beside a message
  };
  std::uint32_t first_dependency = 0;  ///< into Program::dependencies
  std::uint32_t dependencies = 0;      ///< how many; control and data, no duplicates
  std::uint32_t name = 0;              ///< offset into Program::names
  NodeType type = NodeType::invalid;
  CollectiveType collective = CollectiveType::all_reduce;
  std::uint8_t involved_entries = 0;  ///< how many dimensions involved_dim speaks of
  bool on_cpu : 1 = false;            ///< is_cpu_op
  bool has_operations : 1 = false;    ///< num_ops was given
  bool ring_shift : 1 = false;        ///< of messages: its rank's part of a shift in `group`
  bool has_size : 1 = false;          ///< tensor_size or comm_size was given
  bool has_involved : 1 = false;  ///< involved_dim was given; otherwise all dimensions take part

  /// Returns what is compared, each union by the member that fills it.
  auto compared() const {
    return std::tuple(id, duration, size, peer, tag, group, first_dependency, dependencies, name,
                      type, collective, involved_entries, bool{on_cpu}, bool{has_operations},
                      bool{ring_shift}, bool{has_size}, bool{has_involved});
  }

  friend bool operator==(const Node& a, const Node& b) { return a.compared() == b.compared(); }
};
static_assert(sizeof(Node) == 56);

/// Text that programs share: ranks that do different things often name them alike.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}

  const char* c_str() const { return text_ ? text_->c_str() : ""; }
  std::size_t size() const { return text_ ? text_->size() : 0; }
  operator std::string_view() const { return {c_str(), size()}; }
  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || std::string_view(a) == std::string_view(b);
  }

 private:
  std::shared_ptr<const std::string> text_;
};

struct Program {
  std::vector<Node> nodes;                  ///< ascending id
  std::vector<std::uint32_t> dependencies;  ///< positions in `nodes`
  SharedText names;                         ///< each ends with '\0'; equal names are stored once

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
