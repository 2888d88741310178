// SPDX-License-Identifier: Apache-2.0
/// The ranks of a parallel run have files that differ in the groups and peers that they name and in
/// nothing else. Such a file is not decoded: it is compared with one that was, but for those
/// attributes. Measured (bench/chakra_bench): a tenth of the time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/chakra/program_builder.h"
#include "workload/chakra/record.h"

namespace orrery::chakra {

/// Holds where the attributes pg_name, comm_src and comm_dst stand in a file, and what all else is.
class FileShape {
 public:
  void clear();
  /// Records in file order, the metadata's included (without attributes).
  void add_record(std::uint64_t begin, std::uint64_t end);
  void add(const NodeRecord& record);
  /// Learns the shape of the whole file, after its rank got its program. Requires nodes in file
  /// order. Without it nothing matches.
  void finish(std::string_view bytes, const FileTrace& trace, std::int64_t rank,
              std::uint32_t program);

  /// Returns whether the file `bytes` of `rank` of `ranks` has the same program: equal but for
  /// these attributes, peers at the same distance, and groups that are equal where they were. Then
  /// `groups` are the names of slots 1, 2, ... False says nothing about why.
  bool matches(std::string_view bytes, std::int64_t rank, std::int64_t ranks,
               std::vector<std::string>& groups);

  std::uint32_t program() const { return program_; }
  bool same_for_all() const { return same_for_all_; }
  const std::vector<GroupDefinition>& definitions() const { return definitions_; }

 private:
  /// An attribute that may differ: [begin, end) holds its tag, length and value.
  struct Hole {
    std::uint64_t begin;
    std::uint64_t end;
    Attribute attribute;
    std::int64_t value;  ///< the rank; of pg_name: the slot, kFixed where it means nothing
  };
  struct Record {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t first_hole;
  };
  static constexpr std::int64_t kFixed = -1;

  bool match_record(const Record& record, std::size_t last_hole, std::string_view found);
  bool match_hole(const Hole& hole, std::string_view& rest);
  bool match_value(const Hole& hole, const Value& value);

  std::string bytes_;
  std::vector<Record> records_;
  std::vector<Hole> holes_;
  std::vector<std::uint32_t> node_of_hole_;
  std::vector<GroupDefinition> definitions_;
  std::size_t slots_ = 0;
  std::int64_t rank_ = 0;
  std::uint32_t program_ = 0;
  bool same_for_all_ = true;
  bool usable_ = false;

  // While matching.
  NodeRecord scratch_;
  std::vector<std::string_view> names_;  ///< by slot - 1; empty: not yet seen
  std::int64_t shift_ = 0;
  std::int64_t ranks_ = 0;
};

}  // namespace orrery::chakra
