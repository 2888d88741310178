// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/resident_set.h"

namespace orrery::memory {

void ResidentSet::pin(std::int64_t id) {
  Object& object = objects_.at(id);
  pinned_ += object.pins++ == 0 ? object.bytes : Bytes(0);
}

void ResidentSet::unpin(std::int64_t id) {
  Object& object = objects_.at(id);
  pinned_ = pinned_ - (--object.pins == 0 ? object.bytes : Bytes(0));
}

std::optional<ResidentSet::Use> ResidentSet::use(std::int64_t id, Bytes bytes) {
  if (const auto found = objects_.find(id); found != objects_.end()) {
    order_.splice(order_.end(), order_, found->second.place);
    return Use{};
  }
  Use use{.copied = bytes, .evicted = {}};
  Bytes left = used_;
  for (const std::int64_t other : order_) {
    if (left + bytes <= capacity_) {
      break;
    }
    const Object& object = objects_.at(other);
    if (object.pins == 0) {
      left = left - object.bytes;
      use.evicted.push_back(other);
    }
  }
  if (left + bytes > capacity_) {
    return std::nullopt;
  }
  for (const std::int64_t other : use.evicted) {
    order_.erase(objects_.at(other).place);
    objects_.erase(other);
  }
  order_.push_back(id);
  objects_.emplace(id, Object{.bytes = bytes, .pins = 0, .place = std::prev(order_.end())});
  used_ = left + bytes;
  return use;
}

}  // namespace orrery::memory
