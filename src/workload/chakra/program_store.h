// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workload/chakra/trace.h"

namespace orrery::chakra {

std::uint64_t hash_of(const Program& program);

struct TextHash {
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// Distinct programs. Found by hash, compared in full.
class ProgramStore {
 public:
  /// Returns the index of an equal program; a copy without spare capacity is stored when there is
  /// none.
  std::uint32_t store(const Program& program);
  std::vector<Program> take() { return std::move(programs_); }

 private:
  std::vector<Program> programs_;
  // Looked up, never iterated:
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::unordered_set<SharedText, TextHash> names_;
};

}  // namespace orrery::chakra
