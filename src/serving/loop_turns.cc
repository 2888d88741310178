// SPDX-License-Identifier: Apache-2.0
/// The order of scheduling, running and completing steps, by kind of engine.
#include <algorithm>

#include "serving/loop.h"

namespace orrery::serving {

void Loop::go_synchronous() {
  while (now_ < horizon_) {
    enqueue(now_);
    const scheduler::Tick& tick = schedule();
    if (tick.empty()) {
      if (tick.preempted == 0 && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(tick, now_);
    shape_of(tick);
    const bool decodes = options_.skip && only_decodes(tick);
    const Time end = now_ + duration(tick.copied);
    record(now_, end);
    complete(tick, end);
    now_ = end;
    if (!decodes || !finished_.empty() || now_ >= horizon_) {
      continue;
    }
    enqueue(now_);
    const std::int64_t steady = scheduler_->steady_ticks();
    if (steady == 0) {
      continue;
    }
    for (std::size_t w = 0; w < growing_.size(); ++w) {
      shape_.visible[w] += static_cast<double>(growing_[w]);
    }
    shape_.longest += 1;
    for (std::size_t w = 1; w < growing_.size(); ++w) {
      growing_[w] =
          std::count_if(scheduler_->running().begin(), scheduler_->running().end(),
                        [&](scheduler::RequestIndex index) {
                          return scheduler_->request(index).computed + 1 < cost_.windows()[w];
                        });
    }
    decode_run(steady);
  }
}

void Loop::go_asynchronous() {
  while (now_ < horizon_) {
    enqueue(now_);
    if (current_ == nullptr) {
      scheduler::Tick& tick = schedule();
      if (!tick.empty()) {
        current_ = &tick;
      } else if (tick.preempted > 0 || wait()) {
        continue;
      } else {
        return;
      }
    }
    shape_of(*current_);
    if (options_.skip && only_decodes(*current_)) {
      const std::int64_t steady = scheduler_->steady_ticks();
      if (steady > 0 && decode_run(steady) > 0) {
        continue;  // `current_` is the last tick of the run now
      }
    }
    mark_scheduled(*current_, now_);
    const Time end = now_ + duration(current_->copied);
    record(now_, end);
    scheduler::Tick& next = schedule();
    complete(*current_, end);
    current_ = next.empty() ? nullptr : &next;
    now_ = end;
  }
}

void Loop::go_pipelined() {
  const auto stages = static_cast<std::size_t>(run_.engine.pp);
  const auto land = [&] {
    complete(flights_.front().tick, flights_.front().end);
    flights_.pop_front();
  };
  while (now_ < horizon_) {
    while (!flights_.empty() && (flights_.front().end <= now_ || flights_.size() >= stages)) {
      now_ = std::max(now_, flights_.front().end);
      land();
    }
    if (now_ >= horizon_) {
      return;  // what has ended may bring others
    }
    enqueue(now_);
    const scheduler::Tick& tick = schedule();
    if (tick.empty() && !flights_.empty()) {
      const Time landing = flights_.front().end;
      now_ = std::max(now_, std::min({landing, next_event(), horizon_}));
      if (now_ >= landing) {
        land();
      }
      continue;
    }
    if (tick.empty()) {
      if (tick.preempted == 0 && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(tick, now_);
    shape_of(tick);
    const Time step = duration(tick.copied);
    const Time interval = cost_.interval(step);
    const Time end = std::max(now_ + step, last_end_ + interval);
    record(now_, end);
    flights_.push_back({tick, now_, end});
    last_end_ = end;
    now_ += interval;
  }
}

}  // namespace orrery::serving
