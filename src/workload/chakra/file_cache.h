// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/chakra/program_builder.h"
#include "workload/chakra/trace_files.h"

namespace orrery::chakra {

/// A file that was read: what other files with the same bytes, or links to it, do not read again.
struct ReadFile {
  std::size_t index = 0;      ///< in the cache
  std::string bytes;          ///< empty once dropped, and of files larger than the window
  FileTrace trace;            ///< its program is empty when `program` says it all
  std::uint32_t program = 0;  ///< of every rank, when trace.same_for_all()
  std::vector<std::uint32_t> group_of_slot;  ///< indices of groups
  bool dropped = false;                      ///< its trace depends on the rank and is gone
};

/// Files read so far. Of the small part that all their ranks share nothing is ever dropped; bytes,
/// and traces whose program depends on the rank, are kept for the last kBudget bytes only.
class FileCache {
 public:
  static constexpr std::size_t kBudget = std::size_t{32} << 20;

  ReadFile* find(const FileIdentity& identity);
  /// The file with these bytes; found by hash, compared in full.
  ReadFile* find(std::string_view bytes, std::uint64_t hash);
  ReadFile& add(const FileIdentity& identity, std::string_view bytes, std::uint64_t hash);
  /// Another name of a file that is known.
  void link(const FileIdentity& identity, const ReadFile& file);
  /// After the file got its trace: drops what is beyond the budget.
  void charge(const ReadFile& file);

 private:
  static std::size_t cost(const ReadFile& file);

  std::deque<ReadFile> files_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> by_identity_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;  // looked up, never iterated
  std::size_t held_ = 0;
  std::size_t oldest_ = 0;  ///< first that was not dropped
};

}  // namespace orrery::chakra
