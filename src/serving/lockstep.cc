// SPDX-License-Identifier: Apache-2.0
#include "serving/lockstep.h"

#include <algorithm>
#include <utility>

#include "serving/loop.h"
#include "serving/steady.h"

namespace orrery::serving {

Lockstep::Lockstep(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
                   Inbox& inbox, const ServeOptions& options)
    : run_(run), cost_(cost), requests_(requests), inbox_(inbox), options_(options) {
  const Engine& engine = run_.engine;
  for (std::int64_t i = 0; i < engine.dp; ++i) {
    Copy& copy = copies_.emplace_back();
    copy.scheduler = scheduler::make_scheduler(
        engine.policy, limits_of(engine),
        scheduler::KvBook(run_.kv_blocks, engine.block_size, engine.prefix));
  }
}

void Lockstep::enqueue(Time now) {
  while (const auto delivery = inbox_.pop(now)) {
    Copy& copy =
        *std::min_element(copies_.begin(), copies_.end(),
                          [](const Copy& a, const Copy& b) { return a.unfinished < b.unfinished; });
    auto spec = spec_of(requests_[delivery->request], run_, *copy.scheduler);
    if (!spec) {
      ++run_.refused;
      inbox_.ended(delivery->request, delivery->queued);
      continue;
    }
    copy.served_of.push_back(run_.requests.size());
    run_.requests.push_back(served_of(*spec, *delivery));
    number_of_.push_back(delivery->request);
    copy.token.push_back(Time::max());
    ++copy.unfinished;
    copy.scheduler->add(std::move(*spec));
  }
}

Time Lockstep::duration(const Ticks& ticks) {
  std::int64_t most = 0;
  for (const scheduler::Tick* tick : ticks) {
    most = std::max(most, tick->tokens);
  }
  Time accelerator{0};
  std::int64_t samples = 0;
  for (const scheduler::Tick* tick : ticks) {
    fill_shape(*tick, cost_.windows(), shape_);
    shape_.tokens = most;
    samples = std::max(samples, shape_.samples);
    accelerator = std::max(accelerator, cost_.time(shape_) + guessing(run_.engine, cost_, shape_));
  }
  run_.busy += accelerator;
  return with_host(run_.engine, accelerator, samples);
}

void Lockstep::finish(Copy& copy, const scheduler::Tick& tick, Time begin, Time end) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    const auto index = static_cast<std::size_t>(entry.request);
    Served& served = run_.requests[copy.served_of[index]];
    served.scheduled = std::min(served.scheduled, begin);
    if (!entry.emits) {
      continue;
    }
    if (copy.token[index].is_overflow()) {
      served.first = end;
    } else if (const Time gap = end - copy.token[index];
               !run_.gaps.empty() && run_.gaps.back().gap == gap) {
      ++run_.gaps.back().count;
    } else {
      run_.gaps.push_back({gap, 1});
    }
    copy.token[index] = end;
    count_tokens(run_, requests_.front().arrival, end, 1);
  }
  finished_.clear();
  copy.scheduler->complete(tick, finished_);
  for (const scheduler::RequestIndex index : finished_) {
    const std::size_t served = copy.served_of[static_cast<std::size_t>(index)];
    run_.requests[served].last = end;
    inbox_.ended(number_of_[served], end);
    --copy.unfinished;
    run_.duration = std::max(run_.duration, end);
  }
}

bool Lockstep::schedule(Ticks& ticks) {
  bool any = false;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    ticks[i] = &copies_[i].scheduler->schedule();
    any = any || !ticks[i]->empty();
  }
  return any;
}

bool Lockstep::schedule_what_waits(Ticks& ticks) {
  while (!schedule(ticks)) {
    if (std::none_of(ticks.begin(), ticks.end(),
                     [](const scheduler::Tick* tick) { return tick->preempted > 0; })) {
      return false;
    }
  }
  return true;
}

double Lockstep::used() const {
  double used = 0;
  for (const Copy& copy : copies_) {
    const scheduler::KvBook& book = copy.scheduler->book();
    used += static_cast<double>(book.used()) /
            static_cast<double>(book.blocks() * static_cast<std::int64_t>(copies_.size()));
  }
  return used;
}

void Lockstep::sample(Time until, double used) {
  const Time period = from_seconds(1);
  while (period * static_cast<std::int64_t>(run_.samples.size()) <= until) {
    Sample sample{.at = period * static_cast<std::int64_t>(run_.samples.size()), .kv_use = used};
    for (const Copy& copy : copies_) {
      sample.running += copy.scheduler->running_size();
      sample.waiting += static_cast<std::int64_t>(copy.scheduler->waiting().size());
    }
    run_.samples.push_back(sample);
  }
}

void Lockstep::go() {
  Time now{0};
  const bool ahead = copies_.front().scheduler->limits().lookahead;
  Ticks ticks(copies_.size());
  Ticks next(copies_.size());
  bool formed = false;  // in the step before
  for (;;) {
    enqueue(now);
    if (!formed && !schedule_what_waits(ticks)) {
      now = inbox_.next();
      if (now.is_overflow()) {
        break;
      }
      continue;
    }
    const Time end = now + duration(ticks);
    formed = ahead && schedule(next);
    const double in_use = used();
    std::int64_t running = 0;
    for (const Copy& copy : copies_) {
      running += copy.scheduler->running_size();
    }
    run_.peak_kv_use = std::max(run_.peak_kv_use, in_use);
    run_.peak_running = std::max(run_.peak_running, running);
    run_.kv_use_s += in_use * to_seconds(end - now);
    sample(end, in_use);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      finish(copies_[i], *ticks[i], now, end);
    }
    std::swap(ticks, next);
    ++run_.totals.ticks;  // of all copies at once
    if (options_.progress && run_.totals.ticks % 1024 == 0) {
      options_.progress(static_cast<double>(number_of_.size()) /
                        static_cast<double>(requests_.size()));
    }
    now = end;
  }
  const std::int64_t steps = run_.totals.ticks;
  run_.totals = {};
  for (Copy& copy : copies_) {
    run_.totals += copy.scheduler->totals();
    for (std::size_t i = 0; i < copy.served_of.size(); ++i) {
      const auto& state = copy.scheduler->request(static_cast<scheduler::RequestIndex>(i));
      Served& served = run_.requests[copy.served_of[i]];
      served.cached = state.cached;
      served.lost = state.lost;
      served.preemptions = state.preemptions;
    }
  }
  run_.totals.ticks = steps;
}

}  // namespace orrery::serving
