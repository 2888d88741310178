// SPDX-License-Identifier: Apache-2.0
/// A fleet is asked while it runs: who leaves it, and what it has of a request.
#include <algorithm>

#include "serving/fleet.h"

namespace orrery::serving {

void Fleet::abort(std::size_t request, Time at) {
  if (request >= places_.size()) {
    return;
  }
  Place& place = places_[request];
  place.aborted = true;
  if (place.moving || (place.member < 0 && place.prefill < 0)) {
    return;  // it ends with its way
  }
  if (place.member >= 0) {
    Member& member = *members_[static_cast<std::size_t>(place.member)];
    member.driver->abort(place.served, at);
    member.driver->poke(at);
    return;
  }
  Member& source = *members_[static_cast<std::size_t>(place.prefill)];
  for (const auto& member : members_) {
    if (std::erase(member->coming, request) > 0) {  // it waits for blocks where it would decode
      source.driver->let_go(place.prefilled);
      source.driver->poke(at);
      member->ended(request, at);
      return;
    }
  }
  source.driver->abort(place.prefilled, at);
  source.driver->poke(at);
}

bool Fleet::has(std::size_t request) const {
  return request < places_.size() &&
         (places_[request].member >= 0 || places_[request].prefill >= 0);
}

bool Fleet::takes(const requests::Request& request) const {
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& member) { return member->driver->takes(request); });
}

Served Fleet::served(std::size_t request) const {
  const Place& place = places_[request];
  const std::int32_t at = place.member >= 0 ? place.member : place.prefill;
  const Driver& driver = *members_[static_cast<std::size_t>(at)]->driver;
  return driver.served(place.member >= 0 ? place.served : place.prefilled);
}

Measures::State Fleet::load() const {
  Measures::State sum;
  for (const auto& member : members_) {
    const Measures::State its = member->driver->load();
    sum.running += its.running;
    sum.waiting += its.waiting + static_cast<std::int64_t>(member->coming.size());
    sum.blocks += its.blocks;
  }
  return sum;
}

}  // namespace orrery::serving
