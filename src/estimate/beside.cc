// SPDX-License-Identifier: Apache-2.0
#include "estimate/beside.h"

#include <algorithm>
#include <utility>

namespace orrery::estimate {
namespace {

/// Speed at one moment and until when it holds.
struct Moment {
  double slowdown = 1;
  Time until = Time::max();
};

Moment moment(const std::vector<Communication>& all, Time now, const Slowdown& slowdown) {
  Moment result;
  for (const Communication& one : all) {
    if (one.begin > now) {
      result.until = std::min(result.until, one.begin);
      break;  // the others begin later
    }
    if (one.end > now) {
      result.slowdown =
          std::max(result.slowdown, one.collective ? slowdown.collective : slowdown.message);
      result.until = std::min(result.until, one.end);
    }
  }
  return result;
}

}  // namespace

void Beside::insert(const Communication& communication) {
  const auto place = std::upper_bound(
      communications_.begin(), communications_.end(), communication,
      [](const Communication& a, const Communication& b) { return a.begin < b.begin; });
  communications_.insert(place, communication);
}

void Beside::prolong(const std::vector<Time>& ends, std::size_t base) {
  for (Communication& one : communications_) {
    if (one.node - base < ends.size()) {
      one.end = std::max(one.end, ends[one.node - base]);
    }
  }
}

void Beside::forget_all(Time before) {
  std::erase_if(communications_, [&](const Communication& one) { return one.end <= before; });
}

void Beside::prolong_last(Time by) {
  const auto last =
      std::max_element(communications_.begin(), communications_.end(),
                       [](const Communication& a, const Communication& b) {
                         return std::pair(a.collective, a.end) < std::pair(b.collective, b.end);
                       });
  if (last != communications_.end() && last->collective) {
    last->end += by;
  }
}

void Beside::forget_nodes() {
  std::erase_if(communications_, [](const Communication& one) { return one.node != kNoNode; });
}

void Beside::move(Time later, std::size_t nodes) {
  for (Communication& one : communications_) {
    one.node += one.node == kNoNode ? 0 : nodes;
    one.begin += later;
    one.end += later;
  }
}

Time Beside::stretched_beside(Time begin, Time work, const Slowdown& slowdown) const {
  Time now = begin;
  auto left = static_cast<double>(work.value());
  for (;;) {
    const Moment here = moment(communications_, now, slowdown);
    const Time needed = Time::from_double(left * here.slowdown);
    if (here.until.is_overflow() || now + needed <= here.until) {
      return now + needed - begin;
    }
    left = std::max(0.0, left - static_cast<double>((here.until - now).value()) / here.slowdown);
    now = here.until;
  }
}

Time Beside::delay(Time begin, Time end, double share, const Slowdown& slowdown) const {
  if (communications_.empty() || !slowdown.any() || end <= begin) {
    return Time(0);
  }
  const Time work = (end - begin) * share;
  return stretched(begin, work, slowdown) - work;
}

}  // namespace orrery::estimate
