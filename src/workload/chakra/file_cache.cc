// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/file_cache.h"

#include <algorithm>

namespace orrery::chakra {

const ReadFile* FileCache::find(const FileIdentity& identity) const {
  const auto at = by_identity_.find({identity.device, identity.number});
  return at == by_identity_.end() ? nullptr : at->second;
}

const ReadFile* FileCache::find(std::string_view bytes, std::uint64_t hash) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  const auto at = std::find_if(
      first, last, [&](const auto& candidate) { return candidate.second->text == bytes; });
  return at == last ? nullptr : at->second->file;
}

const ReadFile& FileCache::add(const FileIdentity& identity, std::string_view bytes,
                               std::uint64_t hash, const ReadFile& file) {
  const ReadFile& stored = files_.emplace_back(file);
  link(identity, stored);
  while (!bytes_.empty() && held_ + bytes.size() > kBudget) {
    drop_oldest();
  }
  if (!bytes.empty()) {
    held_ += bytes.size();
    by_hash_.emplace(hash, &bytes_.emplace_back(Bytes{std::string(bytes), hash, &stored}));
  }
  return stored;
}

void FileCache::link(const FileIdentity& identity, const ReadFile& file) {
  by_identity_[{identity.device, identity.number}] = &file;
}

void FileCache::drop_oldest() {
  const Bytes& oldest = bytes_.front();
  held_ -= oldest.text.size();
  const auto [first, last] = by_hash_.equal_range(oldest.hash);
  by_hash_.erase(std::find_if(first, last,
                              [&](const auto& candidate) { return candidate.second == &oldest; }));
  bytes_.pop_front();
}

}  // namespace orrery::chakra
