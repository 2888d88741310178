// SPDX-License-Identifier: Apache-2.0
/// Says how many engines a fleet has, and what its router lets in.
#include <algorithm>

#include "serving/fleet.h"

namespace orrery::serving {

void Fleet::start(Member& member, Time at) {
  member.since = at;
  member.ready = at + run_.engine.start_up;
  ++run_.started;
}

void Fleet::stop(Member& member, Time at) {
  run_.held += at - member.since;
  member.ready = Time::max();
  member.leaves = false;
}

void Fleet::withdraw(std::int64_t count, Time at) {
  for (std::size_t i = members_.size(); i-- > 0 && count > 0;) {
    Member& member = *members_[i];
    if (member.ready.is_overflow() || member.leaves) {
      continue;
    }
    member.leaves = true;
    --count;
    if (member.requests == 0) {
      stop(member, at);
    }
  }
}

Time Fleet::next_change() const {
  const bool stops = !fewer_.is_overflow();
  return stops ? fewer_ + run_.engine.cool_down : Time::max();
}

void Fleet::scale(Time at) {
  const Engine& engine = run_.engine;
  if (!engine.scales()) {
    return;
  }
  std::int64_t unanswered = 0;
  std::int64_t there = 0;
  for (const auto& member : members_) {
    if (member->leaves && member->requests == 0) {
      stop(*member, at);
    }
    unanswered += member->requests;
    there += member->ready.is_overflow() || member->leaves ? 0 : 1;
  }
  const std::int64_t wanted =
      std::clamp((unanswered + engine.target_requests - 1) / engine.target_requests,
                 engine.replicas, engine.most_replicas);
  if (wanted >= there) {
    fewer_ = Time::max();
  } else if (fewer_.is_overflow()) {
    fewer_ = at;
  }
  for (std::size_t i = 0; i < members_.size() && there < wanted; ++i) {
    Member& member = *members_[i];
    if (member.leaves) {  // it takes requests again
      member.leaves = false;
      ++there;
    } else if (member.ready.is_overflow()) {
      start(member, at);
      ++there;
    }
  }
  if (there > wanted && at >= fewer_ + engine.cool_down) {
    withdraw(there - wanted, at);
    fewer_ = Time::max();
  }
}

bool Fleet::let_in(Time at) {
  const Engine& engine = run_.engine;
  if (engine.admit_rate == 0) {
    return true;
  }
  bucket_ = std::min(static_cast<double>(engine.admit_burst),
                     bucket_ + to_seconds(at - filled_) * engine.admit_rate);
  filled_ = at;
  if (bucket_ < 1) {
    return false;
  }
  bucket_ -= 1;
  return true;
}

}  // namespace orrery::serving
