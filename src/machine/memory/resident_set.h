// SPDX-License-Identifier: Apache-2.0
/// A ResidentSet is what a fast memory holds of objects that live in a slower one: the least
/// recently used goes first. Objects are read-only: leaving costs nothing, entering copies all of
/// their bytes.
///
///   use(id, bytes)  hit: nothing moves; miss: others leave until `bytes` fit, then they are copied
///
/// Pinned objects (in use by a batch) are never chosen; use() fails if nothing else is left.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace orrery::memory {

class ResidentSet {
 public:
  explicit ResidentSet(Bytes capacity) : capacity_(capacity) {}

  struct Use {
    Bytes copied{0};                    ///< 0: it was there
    std::vector<std::int64_t> evicted;  ///< in the order in which they went
  };
  /// Returns what the use evicts; nothing where the object does not fit beside what is pinned, and
  /// the set stays as it was.
  std::optional<Use> use(std::int64_t id, Bytes bytes);
  void pin(std::int64_t id);
  void unpin(std::int64_t id);
  /// Returns whether use() would succeed.
  bool fits(std::int64_t id, Bytes bytes) const {
    return holds(id) || pinned_ + bytes <= capacity_;
  }

  bool holds(std::int64_t id) const { return objects_.contains(id); }
  Bytes used() const { return used_; }
  Bytes capacity() const { return capacity_; }

 private:
  struct Object {
    Bytes bytes{0};
    std::int64_t pins = 0;
    std::list<std::int64_t>::iterator place;
  };

  Bytes capacity_;
  Bytes used_{0};
  Bytes pinned_{0};
  std::list<std::int64_t> order_;  ///< least recently used first
  std::unordered_map<std::int64_t, Object> objects_;
};

}  // namespace orrery::memory
