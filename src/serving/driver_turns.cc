// SPDX-License-Identifier: Apache-2.0
/// The order of taking requests and of scheduling, running and completing steps, by rule of turns.
#include <algorithm>

#include "serving/driver.h"
#include "serving/intake.h"

namespace orrery::serving {
namespace {

bool preempts(const Ticks& ticks) {
  return std::ranges::any_of(ticks, [](const auto* tick) { return tick->preempted > 0; });
}

/// Returns the adapters that the copy with most of them copies.
std::int64_t copied_by(const Ticks& ticks) {
  std::int64_t most = 0;
  for (const scheduler::Tick* tick : ticks) {
    most = std::max(most, tick->copied);
  }
  return most;
}

/// Returns `most`, or how many steps come before a request sees no more keys of a window.
std::int64_t before_windows_fill(std::int64_t most, const scheduler::Scheduler& scheduler,
                                 const std::vector<std::int64_t>& windows) {
  for (std::size_t w = 1; w < windows.size(); ++w) {
    for (const scheduler::RequestIndex index : scheduler.running()) {
      // The first step of the run computes token `computed` (one before, if it is in flight).
      const scheduler::RequestState& state = scheduler.request(index);
      const std::int64_t keys = state.computed - state.in_flight + 1;
      if (keys < windows[w]) {
        most = std::min(most, windows[w] - keys);
      }
    }
  }
  return most;
}

/// Returns whether all of the running requests decode one token; false for several copies.
bool only_decodes(const std::vector<Copy>& copies, const Ticks& ticks, const Engine& engine) {
  const scheduler::Tick& tick = *ticks.front();
  const Copy& copy = copies.front();
  return copies.size() == 1 && tick.copied == 0 && !engine.whole_adapters &&
         tick.entries.size() == copy.scheduler->running().size() &&
         std::ranges::all_of(tick.entries, [&](const scheduler::Scheduled& entry) {
           return entry.tokens == 1 && entry.emits &&
                  !copy.token[static_cast<std::size_t>(entry.request)].is_overflow();
         });
}

bool is_idle(const std::vector<Copy>& copies) {
  return std::ranges::all_of(copies,
                             [](const Copy& copy) { return copy.scheduler->running().empty(); });
}

}  // namespace

void Driver::enqueue(Time now) {
  for (Copy& copy : copies_) {
    end_copies(copy, now);
  }
  while (const auto delivery = inbox_.pop(now)) {
    held_.add(*delivery, steps_);
  }
  if (is_idle(copies_) || held_.steps(run_.engine, requests_, steps_) == 0) {
    for (const Delivery& delivery : held_.take()) {
      take(delivery);
    }
  }
  end_aborted(now);
}

void Driver::take(const Delivery& delivery) {
  const std::size_t copy = emptiest(copies_);
  scheduler::Scheduler& scheduler = *copies_[copy].scheduler;
  auto spec = spec_of(requests_[delivery.request], run_, scheduler);
  if (!spec) {
    ++run_.refused;
    inbox_.ended(delivery.request, delivery.queued);
    return;
  }
  const bool moves = only_prefill_ && spec->output > 1;
  if (only_prefill_) {
    spec->keeps_blocks = spec->keeps_blocks || moves;
    spec->output = 1;
  }
  add(delivery.request, copy, served_of(*spec, delivery), Time::max());
  copies_[copy].holders.back() = moves ? 1 : 0;
  scheduler.add(std::move(*spec));
}

void Driver::go_synchronous() {
  while (now_ < horizon_ && goes_on(options_)) {
    enqueue(now_);
    if (!schedule(ticks_)) {
      if (!preempts(ticks_) && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(ticks_, now_);
    shapes_.form(copies_, ticks_);
    const bool decodes = options_.skip && only_decodes(copies_, ticks_, run_.engine);
    const Time end = now_ + duration(copied_by(ticks_));
    record(now_, end);
    complete(ticks_, end);
    now_ = end;
    if (!decodes || !copies_.front().finished.empty() || now_ >= horizon_) {
      continue;
    }
    enqueue(now_);
    const scheduler::Scheduler& scheduler = *copies_.front().scheduler;
    const std::int64_t steady = scheduler.steady_ticks();
    if (steady > 0) {
      shapes_.go_on();
      shapes_.count_growing(scheduler);
      decode_run(steady);
    }
  }
}

void Driver::go_ahead() {
  while (now_ < horizon_ && goes_on(options_)) {
    enqueue(now_);
    if (!formed_ && !schedule(ticks_)) {
      if (!preempts(ticks_) && !wait()) {
        return;
      }
      continue;
    }
    formed_ = true;
    shapes_.form(copies_, ticks_);
    if (options_.skip && only_decodes(copies_, ticks_, run_.engine)) {
      const std::int64_t steady = copies_.front().scheduler->steady_ticks();
      if (steady > 0 && decode_run(steady) > 0) {
        continue;  // `ticks_` are the last ones of the run now
      }
    }
    mark_scheduled(ticks_, now_);
    const Time end = now_ + duration(copied_by(ticks_));
    record(now_, end);
    formed_ = schedule(next_);
    complete(ticks_, end);
    std::swap(ticks_, next_);
    now_ = end;
  }
}

void Driver::land() {
  const Flight& flight = flights_.front();
  std::transform(flight.ticks.begin(), flight.ticks.end(), next_.begin(),
                 [](const scheduler::Tick& tick) { return &tick; });
  complete(next_, flight.end);
  flights_.pop_front();
  waiting_ = false;
}

void Driver::go_pipelined() {
  while (clock() < horizon_ && goes_on(options_)) {
    const Time landing = flights_.empty() ? Time::max() : flights_.front().end;
    if (landing <= now_ || std::ssize(flights_) >= run_.engine.pp ||
        (waiting_ && landing <= next_event())) {
      now_ = std::max(now_, landing);
      land();
      continue;
    }
    now_ = waiting_ ? std::max(now_, next_event()) : now_;
    enqueue(now_);
    const bool any = schedule(ticks_);
    waiting_ = !any && !flights_.empty();
    if (waiting_) {
      continue;
    }
    if (!any) {
      if (!preempts(ticks_) && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(ticks_, now_);
    shapes_.form(copies_, ticks_);
    const Time step = duration(copied_by(ticks_));
    const Time interval = cost_.interval(step);
    const Time end = std::max(now_ + step, last_end_ + interval);
    record(now_, end);
    Flight& flight = flights_.emplace_back();
    flight.end = end;
    for (const scheduler::Tick* tick : ticks_) {
      flight.ticks.push_back(*tick);
    }
    last_end_ = end;
    now_ += interval;
  }
}

std::int64_t Driver::decode_run(std::int64_t most) {
  Copy& copy = copies_.front();
  scheduler::Scheduler& scheduler = *copy.scheduler;
  most = before_windows_fill(most, scheduler, cost_.windows());
  most = held_.empty() ? most : std::min(most, held_.steps(run_.engine, requests_, steps_));
  const auto requests = static_cast<std::int64_t>(scheduler.running().size());
  for (const scheduler::RequestIndex index : scheduler.running()) {
    if (copy.token[static_cast<std::size_t>(index)] != now_) {
      return 0;  // it missed a step: the next one is not like the others
    }
  }
  Time until = scheduler.open() ? std::min(horizon_, inbox_.next()) : horizon_;
  until = copy.tiers ? std::min(until, copy.tiers->next()) : until;
  std::int64_t done = 0;
  std::int64_t blocks = scheduler.book().used();
  const bool ahead = scheduler.limits().lookahead;  // the first step's are given out already
  while (done < most && now_ < until) {
    const Time busy = run_.busy;
    const Energy drawn = run_.drawn;
    const Time step = duration(0);
    if (now_ + step >= measures_.next_sample()) {  // what is sampled is what stepping finds
      run_.busy = busy;
      run_.drawn = drawn;
      break;
    }
    record(now_, now_ + step);
    blocks += ahead ? 0 : scheduler.steady_blocks(done);
    measures_.on_blocks(now_, blocks);
    blocks += ahead ? scheduler.steady_blocks(done) : 0;
    now_ += step;
    measures_.on_gaps(step, requests);
    measures_.on_tokens(now_, requests);
    shapes_.go_on();
    ++done;
  }
  for (const scheduler::RequestIndex index : scheduler.running()) {
    copy.token[static_cast<std::size_t>(index)] = now_;
  }
  if (done > 0) {
    scheduler.skip(done);
    steps_ += done;
    run_.duration = std::max(run_.duration, now_);
  }
  return done;
}

}  // namespace orrery::serving
