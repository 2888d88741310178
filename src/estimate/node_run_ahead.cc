// SPDX-License-Identifier: Apache-2.0
// Nodes of the next instance that begin beside this one, and nodes that others delay.
#include <algorithm>

#include "estimate/node_run.h"

namespace orrery::estimate {

void NodeRun::start_ahead(const TimedTemplate& nodes, std::span<const std::uint32_t> ahead,
                          Time visible, NodeRun& before) {
  Clocks clocks{};
  clocks[kVisible] = visible;
  start(nodes, clocks);
  base_ = before.base_ == 0 ? kSecondRun : 0;
  is_ahead_ = true;
  for (const std::uint32_t number : ahead) {
    put_off(number);
  }
  before.following_ = this;
  before.least_ahead_ = kNever;
  before.freed_ahead_ = 0;
  before.past_.fill(0);
  for (std::size_t i = 0; i < before.template_->nodes.size(); ++i) {
    before.past_[before.template_->nodes[i].lane] = i + 1;
  }
}

void NodeRun::go_on(const Clocks& clocks, bool jumps, const EarlierHost& earlier) {
  clocks_ = clocks;
  jumps_ = jumps;
  earlier_ = earlier;
  is_ahead_ = false;
  waiting_ = {};
  waits_ = 0;
  watch(0);
}

/// Whether one of the next instance's may, while this one's nodes before that are looked at.
bool NodeRun::may_begin_ahead(std::size_t until) const {
  for (std::size_t lane = 0; waits_ahead() && lane < past_.size(); ++lane) {
    if (!following_->waiting_[lane].empty() && past_[lane] < until) {
      return true;
    }
  }
  return false;
}

/// Of the next instance's nodes that wait for none of this one's, that which begins first.
std::size_t NodeRun::first_ahead() {
  const NodeRun& next = *following_;
  std::size_t first = kNoNode;
  least_ahead_ = Time::max();
  freed_ahead_ = kNoNode;
  for (std::size_t l = 0; l < past_.size(); ++l) {
    const Waiting& lane = next.waiting_[l];
    if (lane.empty()) {
      continue;
    }
    if (past_[l] > next_ || !waiting_[l].empty()) {
      freed_ahead_ = std::min(freed_ahead_, std::max(past_[l], next_ + 1));
      continue;
    }
    const TimedNode& node = next.template_->nodes[lane.nodes[lane.first]];
    const auto before = next.template_->before.begin() + node.first_before;
    const bool may_begin = std::none_of(before, before + node.befores, [&](std::uint32_t one) {
      return next.ends_[one] == kNever;
    });
    const Time begin = may_begin ? next.begin_of(node) : Time::max();
    if (begin < least_ahead_) {
      first = lane.nodes[lane.first];
      least_ahead_ = begin;
    }
  }
  return first;
}

std::vector<Time> NodeRun::ends_ahead(Time now) const {
  std::vector<Time> ends;
  for (std::size_t i = 0; is_ahead_ && i < ends_.size(); ++i) {
    if (ends_[i] != kNever) {
      ends.push_back(std::max(ends_[i], now));
    }
  }
  return ends;
}

void NodeRun::move_ahead(Time later) {
  for (Time& end : ends_) {
    end += is_ahead_ && end != kNever ? later : Time(0);
  }
  for (LaneSpan& span : spans_) {
    span.begin += is_ahead_ ? later : Time(0);
    span.end += is_ahead_ ? later : Time(0);
  }
}

void NodeRun::prolong_ahead(int lane, Time by) {
  for (std::size_t i = 0; is_ahead_ && i < ends_.size(); ++i) {
    ends_[i] += ends_[i] != kNever && template_->nodes[i].lane == lane ? by : Time(0);
  }
}

void NodeRun::follow_moved(const Ports& ports, Beside& beside, Clocks& clocks) {
  bool own = false;
  bool ahead = false;
  const auto follows = [](NodeRun& run, const Ports::Moved& moved) {
    const std::size_t node = moved.node - run.base_;
    if (node >= run.ends_.size()) {
      return false;
    }
    run.taken_[node] += moved.end - run.ends_[node];
    run.ends_[node] = moved.end;
    return true;
  };
  for (const Ports::Moved& moved : ports.moved()) {
    if (moved.lane == Ports::kIncoming) {
      continue;
    }
    Time& lane = clocks[static_cast<std::size_t>(clock_of(moved.lane))];
    lane = std::max(lane, moved.end);
    if (follows(*this, moved)) {
      own = true;
    } else if (following_ != nullptr && follows(*following_, moved)) {
      ahead = true;
    }
  }
  if (own) {
    beside.prolong(ends_, base_);
  }
  if (ahead) {
    beside.prolong(following_->ends_, following_->base_);
  }
}

}  // namespace orrery::estimate
