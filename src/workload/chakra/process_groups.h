// SPDX-License-Identifier: Apache-2.0
/// Process groups by name: from the file of communicator groups, and from METADATA nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Returns "" for the world ("", "0"), else the name without leading zeros ("07" is 7 to
/// ASTRA-sim).
std::string_view canonical_group_name(std::string_view name);

/// The text of a METADATA node's inputs.values without its first and last two characters is a JSON
/// list of {"pg_name": "1", "ranks": [0, 1]}; no ranks = all. Text without a pg_name in it is
/// about something else and defines nothing.
Result<std::vector<GroupDefinition>> parse_process_groups(std::string_view input_values);

/// All groups of a trace set, and what their names mean.
class GroupTable {
 public:
  /// Makes a table of the world alone, of `ranks` ranks.
  explicit GroupTable(std::int64_t ranks);

  /// Reads {"1": [0, 1], "2": [2, 3]}. Mistakes, each with file and line: names that are no whole
  /// number above 0, ranks that do not exist or stand twice, a group without ranks.
  Result<void> read_file(const std::string& path);
  /// Adds the groups that a trace file defines for itself. Equal ones are stored once.
  void define(const std::vector<GroupDefinition>& definitions, Mistakes& mistakes);
  /// Forgets what define() said, but not the groups.
  void end_file();

  /// Returns the index of the group that `name` means; a mistake when there is none.
  std::optional<std::uint32_t> find(std::string_view name) const;
  bool has_member(std::uint32_t group, std::int64_t rank) const;
  std::vector<Group> take() { return std::move(groups_); }
  const Group& operator[](std::uint32_t index) const { return groups_[index]; }
  std::vector<std::string> names() const;

 private:
  std::uint32_t store(std::string_view name, std::vector<std::int64_t> ranks);

  std::int64_t ranks_ = 0;
  std::vector<Group> groups_;
  std::vector<std::vector<std::int64_t>> members_;  ///< by group, ascending; empty: all
  std::map<std::string, std::uint32_t, std::less<>> of_file_;
  std::map<std::string, std::uint32_t, std::less<>> of_trace_;
  std::multimap<std::string, std::uint32_t, std::less<>> by_name_;
};

}  // namespace orrery::chakra
