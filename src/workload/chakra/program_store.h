// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workload/chakra/trace.h"

namespace orrery::chakra {

std::uint64_t hash_of(const Program& program);

/// Distinct programs. Found by hash, compared in full.
class ProgramStore {
 public:
  /// Index of an equal program; a copy without spare capacity is stored when there is none.
  std::uint32_t store(const Program& program);
  std::vector<Program> take() { return std::move(programs_); }

 private:
  std::vector<Program> programs_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;  // looked up, never iterated
};

}  // namespace orrery::chakra
