// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/file_cache.h"

namespace orrery::chakra {

ReadFile* FileCache::find(const FileIdentity& identity) {
  const auto at = by_identity_.find({identity.device, identity.number});
  return at == by_identity_.end() || files_[at->second].dropped ? nullptr : &files_[at->second];
}

ReadFile* FileCache::find(std::string_view bytes, std::uint64_t hash) {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    ReadFile& file = files_[at->second];
    if (!file.dropped && !file.bytes.empty() && file.bytes == bytes) {
      return &file;
    }
  }
  return nullptr;
}

ReadFile& FileCache::add(const FileIdentity& identity, std::string_view bytes, std::uint64_t hash) {
  const std::size_t index = files_.size();
  ReadFile& file = files_.emplace_back();
  file.index = index;
  file.bytes = bytes;
  by_identity_[{identity.device, identity.number}] = index;
  if (!bytes.empty()) {
    by_hash_.emplace(hash, index);
  }
  return file;
}

void FileCache::link(const FileIdentity& identity, const ReadFile& file) {
  by_identity_[{identity.device, identity.number}] = file.index;
}

std::size_t FileCache::cost(const ReadFile& file) {
  const Program& program = file.trace.program;
  return file.bytes.size() + program.nodes.size() * sizeof(Node) +
         program.dependencies.size() * sizeof(std::uint32_t) + program.names.size();
}

void FileCache::charge(const ReadFile& file) {
  held_ += cost(file);
  // The newest stays whatever its size: the rank that is being read needs it.
  for (; held_ > kBudget && oldest_ < file.index; ++oldest_) {
    ReadFile& old = files_[oldest_];
    held_ -= cost(old);
    old.bytes = std::string();
    old.dropped = !old.trace.same_for_all();
    old.trace.program = Program();
  }
}

}  // namespace orrery::chakra
