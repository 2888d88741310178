// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace orrery::chakra {

/// Says which files hold the traces of a prefix.
struct TraceFiles {
  std::string prefix;
  std::string extension;  ///< ".et", ".json" or ".txt" (SimAI)
  std::string one;        ///< the file that serves every rank; empty: one per rank
  bool json() const { return extension == ".json"; }
  bool text() const { return extension == ".txt"; }
  std::string of(std::int64_t rank) const {
    return one.empty() ? prefix + "." + std::to_string(rank) + extension : one;
  }
};

/// Returns the first that exists of PREFIX.0.et, PREFIX.all.et, PREFIX.et, the file PREFIX, and the
/// same with .json; a file that ends in .txt is SimAI's. A mistake names what was looked for.
Result<TraceFiles> find_trace_files(const std::string& prefix);

/// Returns how many files PREFIX.<rank>.et (or .json) there are from rank 0 on without a gap; 0
/// when one file serves every rank. Mistakes: those of find_trace_files.
Result<std::int64_t> count_trace_files(const std::string& prefix);

/// A FileIdentity is what a path leads to, so that links to one file are read once.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t number = 0;
  std::uint64_t size = 0;  ///< in bytes
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Mistakes: no such file, not a regular file.
Result<FileIdentity> identify(const std::string& path);

}  // namespace orrery::chakra
