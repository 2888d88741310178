// SPDX-License-Identifier: Apache-2.0
/// Records -> the program of one file: what attributes mean, dependencies as positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/chakra/mistakes.h"
#include "workload/chakra/name_table.h"
#include "workload/chakra/record.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// A process group that a METADATA node defines.
struct GroupDefinition {
  std::string name;
  std::vector<std::int64_t> ranks;  ///< empty: all
};

/// OwnRank is what a node says about its own rank: comm_src of a send, comm_dst of a receive.
struct OwnRank {
  std::uint32_t node = 0;  ///< position
  std::int64_t rank = 0;
};

/// One file, not yet of a rank: peers are ranks, not offsets.
struct FileTrace {
  Program program;
  std::vector<std::string> groups;  ///< name of slot 1, 2, ...
  std::vector<GroupDefinition> definitions;
  std::vector<OwnRank> own_ranks;
  /// Positions of the nodes that have a peer. Without any, all ranks of the file do the same.
  std::vector<std::uint32_t> messages;
};

/// Used for file after file, so that its memory is allocated once.
class ProgramBuilder {
 public:
  void begin(Mistakes& mistakes);
  /// Adds a node. It needs, by type of node (not of nodes on the CPU, which only take their
  /// duration):
  ///   MEM_LOAD, MEM_STORE   tensor_size
  ///   COMM_SEND, COMM_RECV  comm_size and the other rank (comm_dst, comm_src)
  ///   COMM_COLL             comm_type and, but for a barrier, comm_size
  /// Attributes that the type does not use are not looked at. Mistakes: a type or comm_type that
  /// the schema does not have, a value of the wrong kind (floating point for a whole number) or
  /// beyond its range, sizes and durations that Bytes and Time do not hold.
  void add(const NodeRecord& record);
  /// Adds a process group that no METADATA node defines.
  void define(GroupDefinition definition) { trace_.definitions.push_back(std::move(definition)); }
  /// Sorts by id and resolves dependencies. Mistakes: an id given twice, dependencies on itself,
  /// on a node that does not exist, in a circle.
  void finish();
  /// Returns the trace, after finish() without a mistake and until begin(). It may be moved from.
  FileTrace& trace() { return trace_; }
  /// Returns whether nodes stood in the file in the order of their ids.
  bool in_file_order() const { return ascending_; }

 private:
  void read_compute(const NodeRecord& record, Node& node);
  void read_memory(const NodeRecord& record, Node& node);
  void read_message(const NodeRecord& record, Node& node);
  void read_collective(const NodeRecord& record, Node& node);
  void read_metadata(const NodeRecord& record);
  void read_size(const NodeRecord& record, Attribute attribute, bool required, Node& node);
  std::uint32_t slot_of(std::string_view group);

  const Value* find(const NodeRecord& record, Attribute attribute, bool required);
  float slowdown(const NodeRecord& record, Attribute attribute);
  void read_group(const NodeRecord& record, Node& node);
  std::int64_t whole(const NodeRecord& record, Attribute attribute, bool required,
                     std::int64_t most);
  bool boolean(const NodeRecord& record, Attribute attribute);
  void wrong(const NodeRecord& record, std::string_view field, std::string found,
             std::string expected);

  void sort();
  void resolve();
  bool find_positions(const Node& node, std::uint64_t first, std::uint64_t count);
  std::int64_t position_of(std::uint64_t id) const;
  void refuse_cycles();
  void report_cycle(const std::vector<std::uint32_t>& open);

  Mistakes* mistakes_ = nullptr;
  FileTrace trace_;
  NameTable names_;
  NameTable groups_;
  std::vector<std::uint64_t> wanted_;  ///< ids of dependencies, node after node
  std::vector<std::uint64_t> first_wanted_;
  std::vector<std::uint32_t> found_;  ///< of one node
  bool ascending_ = true;
};

}  // namespace orrery::chakra
