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

#include "workload/chakra/trace_files.h"

namespace orrery::chakra {

/// A ReadFile is what a file says to every rank that has it, or one with the same bytes, or a link
/// to it.
struct ReadFile {
  bool same_for_all = true;                  ///< false: the program depends on the rank
  std::uint32_t program = 0;                 ///< of a TraceSet, when same_for_all
  std::vector<std::uint32_t> group_of_slot;  ///< indices of groups
};

/// Files whose program does not depend on the rank. Their bytes, by which equal files are known
/// before they are decoded, are kept for the last kBudget bytes only.
class FileCache {
 public:
  static constexpr std::size_t kBudget = std::size_t{32} << 20;

  const ReadFile* find(const FileIdentity& identity) const;
  /// Returns the file with these bytes; found by hash, compared in full.
  const ReadFile* find(std::string_view bytes, std::uint64_t hash) const;
  const ReadFile& add(const FileIdentity& identity, std::string_view bytes, std::uint64_t hash,
                      const ReadFile& file);
  /// Another name of a file that is known.
  void link(const FileIdentity& identity, const ReadFile& file);

 private:
  struct Bytes {
    std::string text;
    std::uint64_t hash;
    const ReadFile* file;
  };

  void drop_oldest();

  std::deque<ReadFile> files_;  // in which pointers stay valid
  std::map<std::pair<std::uint64_t, std::uint64_t>, const ReadFile*> by_identity_;
  std::deque<Bytes> bytes_;                                       ///< oldest first
  std::unordered_multimap<std::uint64_t, const Bytes*> by_hash_;  // looked up, never iterated
  std::size_t held_ = 0;
};

}  // namespace orrery::chakra
