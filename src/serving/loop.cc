// SPDX-License-Identifier: Apache-2.0
#include "serving/loop.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "serving/steady.h"

namespace orrery::serving {
namespace {

constexpr Time kSamplePeriod = from_seconds(1);

}  // namespace

void fill_shape(const scheduler::Tick& tick, const std::vector<std::int64_t>& windows,
                step::StepShape& shape) {
  shape.tokens = tick.tokens;
  shape.samples = static_cast<std::int64_t>(tick.entries.size());
  shape.prompts.clear();
  shape.decodes = 0;
  shape.visible.assign(windows.size(), 0);
  shape.queries = 1;
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (entry.tokens > 1 + entry.drafts) {
      shape.prompts.push_back({.queries = entry.tokens, .context = entry.context});
      continue;
    }
    ++shape.decodes;
    shape.queries = std::max(shape.queries, entry.tokens);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const std::int64_t keys = entry.context + 1;
      shape.visible[w] += static_cast<double>(windows[w] > 0 ? std::min(keys, windows[w]) : keys);
    }
  }
}

Loop::Loop(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
           Inbox& inbox, const ServeOptions& options)
    : run_(run), cost_(cost), requests_(requests), inbox_(inbox), options_(options) {
  const Engine& engine = run_.engine;
  scheduler_ = scheduler::make_scheduler(
      engine.policy, limits_of(engine),
      scheduler::KvBook(run_.kv_blocks, engine.block_size, engine.prefix));
  shape_.visible.resize(cost_.windows().size());
  growing_.resize(cost_.windows().size());
}

void Loop::run_until(Time horizon) {
  horizon_ = horizon;
  if (run_.engine.pp > 1) {
    go_pipelined();
  } else if (scheduler_->limits().lookahead) {
    go_asynchronous();
  } else {
    go_synchronous();
  }
}

void Loop::poke(Time at) {
  if (stalled_) {
    stalled_ = false;
    now_ = std::max(now_, at);
  }
}

std::optional<std::size_t> Loop::expect(std::size_t number, const requests::Request& request,
                                        const Served& served) {
  auto spec = spec_of(request, run_.engine, *scheduler_);
  if (!spec || !scheduler_->expect(std::move(*spec))) {
    return std::nullopt;
  }
  run_.requests.push_back(served);
  run_.requests.back().output = std::min(request.output, run_.engine.max_model_len - request.input);
  number_of_.push_back(number);
  token_.push_back(served.first);
  return run_.requests.size() - 1;
}

void Loop::finish() {
  assert(scheduler_->waiting().empty() && scheduler_->running().empty() && "all that joined ended");
  run_.totals = scheduler_->totals();
  for (std::size_t i = 0; i < run_.requests.size(); ++i) {
    const scheduler::RequestState& state =
        scheduler_->request(static_cast<scheduler::RequestIndex>(i));
    Served& served = run_.requests[i];
    served.cached = state.cached;
    served.lost = state.lost;
    served.preemptions = state.preemptions;
  }
}

void Loop::enqueue(Time now) {
  while (const auto delivery = inbox_.pop(now)) {
    auto spec = spec_of(requests_[delivery->request], run_.engine, *scheduler_);
    if (!spec) {
      ++run_.refused;
      inbox_.ended(delivery->request, delivery->queued);
      continue;
    }
    if (only_prefill_) {
      spec->keeps_blocks = spec->output > 1;
      spec->output = 1;
    }
    run_.requests.push_back(served_of(*spec, *delivery));
    number_of_.push_back(delivery->request);
    token_.push_back(Time::max());
    scheduler_->add(std::move(*spec));
  }
}

bool Loop::wait() {
  const Time next = inbox_.next();
  stalled_ = next.is_overflow();
  if (!stalled_) {
    now_ = next;
  }
  return !stalled_;
}

void Loop::shape_of(const scheduler::Tick& tick) {
  const std::vector<std::int64_t>& windows = cost_.windows();
  fill_shape(tick, windows, shape_);
  growing_[0] = shape_.decodes;
  for (std::size_t w = 1; w < windows.size(); ++w) {
    growing_[w] = std::count_if(tick.entries.begin(), tick.entries.end(),
                                [&](const scheduler::Scheduled& entry) {
                                  return entry.tokens == 1 && entry.context + 1 < windows[w];
                                });
  }
}

Time Loop::duration() {
  const Time accelerator = cost_.time(shape_) + guessing(run_.engine, cost_, shape_);
  run_.busy += accelerator;
  return with_host(run_.engine, accelerator, shape_.samples);
}

void Loop::mark_scheduled(const scheduler::Tick& tick, Time begin) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    Served& served = run_.requests[static_cast<std::size_t>(entry.request)];
    if (served.scheduled.is_overflow()) {
      served.scheduled = begin;
    }
  }
}

void Loop::add_gap(Time gap, std::int64_t count) {
  if (!run_.gaps.empty() && run_.gaps.back().gap == gap) {
    run_.gaps.back().count += count;
  } else {
    run_.gaps.push_back({gap, count});
  }
}

void Loop::complete(const scheduler::Tick& tick, Time end) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (!entry.emits) {
      continue;
    }
    const auto index = static_cast<std::size_t>(entry.request);
    if (token_[index].is_overflow()) {
      run_.requests[index].first = end;
    } else {
      add_gap(end - token_[index], 1);
    }
    token_[index] = end;
  }
  finished_.clear();
  scheduler_->complete(tick, finished_);
  for (const scheduler::RequestIndex index : finished_) {
    run_.requests[static_cast<std::size_t>(index)].last = end;
    inbox_.ended(number_of_[static_cast<std::size_t>(index)], end);
  }
  run_.duration = std::max(run_.duration, end);
  constexpr std::size_t kReportEvery = 4096;
  const std::size_t before = ended_ / kReportEvery;
  ended_ += finished_.size();
  if (options_.progress && ended_ / kReportEvery > before) {
    options_.progress(static_cast<double>(ended_) / static_cast<double>(requests_.size()));
  }
}

void Loop::record(Time begin, Time end) {
  if (run_.steps.size() < options_.most_steps) {
    run_.steps.push_back({begin, end, shape_.tokens, shape_.samples});
  }
  sample(end);
}

void Loop::sample(Time until) {
  const scheduler::KvBook& book = scheduler_->book();
  const double use = static_cast<double>(book.used()) / static_cast<double>(book.blocks());
  run_.peak_kv_use = std::max(run_.peak_kv_use, use);
  constexpr std::size_t kMostSamples = 1'000'000;
  while (next_sample_ <= until && run_.samples.size() < kMostSamples) {
    run_.samples.push_back({next_sample_, scheduler_->running_size(),
                            static_cast<std::int64_t>(scheduler_->waiting().size()), use});
    next_sample_ += kSamplePeriod;
  }
  if (run_.samples.size() == kMostSamples) {
    next_sample_ = Time::max();
  }
}

bool Loop::only_decodes(const scheduler::Tick& tick) const {
  return static_cast<std::int64_t>(tick.entries.size()) == scheduler_->running_size() &&
         std::all_of(tick.entries.begin(), tick.entries.end(),
                     [&](const scheduler::Scheduled& entry) {
                       return entry.tokens == 1 && entry.emits &&
                              !token_[static_cast<std::size_t>(entry.request)].is_overflow();
                     });
}

std::int64_t Loop::decode_run(std::int64_t most) {
  // Windows: until the next request sees no more keys than before.
  const std::vector<std::int64_t>& windows = cost_.windows();
  for (std::size_t w = 1; w < windows.size(); ++w) {
    for (const scheduler::RequestIndex index : scheduler_->running()) {
      // The first step of the run computes token `computed` (one before, if it is in flight).
      const scheduler::RequestState& state = scheduler_->request(index);
      const std::int64_t keys = state.computed - state.in_flight + 1;
      if (keys < windows[w]) {
        most = std::min(most, windows[w] - keys);
      }
    }
  }
  if (most <= 0) {
    return 0;
  }
  const auto requests = static_cast<std::int64_t>(scheduler_->running().size());
  for (const scheduler::RequestIndex index : scheduler_->running()) {
    if (token_[static_cast<std::size_t>(index)] != now_) {
      return 0;  // it missed a step: the next one is not like the others
    }
  }
  const Time until = scheduler_->open() ? std::min(horizon_, inbox_.next()) : horizon_;
  std::int64_t done = 0;
  while (done < most && now_ < until) {
    const Time busy = run_.busy;
    const Time step = duration();
    if (now_ + step >= next_sample_) {  // what is sampled is what stepping finds
      run_.busy = busy;
      break;
    }
    record(now_, now_ + step);
    now_ += step;
    add_gap(step, requests);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      shape_.visible[w] += static_cast<double>(growing_[w]);
    }
    ++done;
  }
  for (const scheduler::RequestIndex index : scheduler_->running()) {
    token_[static_cast<std::size_t>(index)] = now_;
  }
  if (done > 0) {
    scheduler_->skip(done);
    run_.duration = std::max(run_.duration, now_);
  }
  return done;
}

void Loop::go_synchronous() {
  while (now_ < horizon_) {
    enqueue(now_);
    const scheduler::Tick& tick = scheduler_->schedule();
    if (tick.empty()) {
      if (tick.preempted == 0 && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(tick, now_);
    shape_of(tick);
    const bool decodes = options_.skip && only_decodes(tick);
    const Time end = now_ + duration();
    record(now_, end);
    complete(tick, end);
    now_ = end;
    if (!decodes || !finished_.empty()) {
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
      scheduler::Tick& tick = scheduler_->schedule();
      if (tick.empty()) {
        if (tick.preempted == 0 && !wait()) {
          return;
        }
        continue;
      }
      current_ = &tick;
    }
    shape_of(*current_);
    if (options_.skip && only_decodes(*current_)) {
      const std::int64_t steady = scheduler_->steady_ticks();
      if (steady > 0 && decode_run(steady) > 0) {
        continue;  // `current_` is the last tick of the run now
      }
    }
    mark_scheduled(*current_, now_);
    const Time end = now_ + duration();
    record(now_, end);
    scheduler::Tick& next = scheduler_->schedule();
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
    const scheduler::Tick& tick = scheduler_->schedule();
    if (tick.empty()) {
      if (!flights_.empty()) {
        const Time landing = flights_.front().end;
        now_ = std::max(now_, std::min({landing, inbox_.next(), horizon_}));
        if (now_ >= landing) {
          land();
        }
      } else if (tick.preempted == 0 && !wait()) {
        return;
      }
      continue;
    }
    mark_scheduled(tick, now_);
    shape_of(tick);
    const Time step = duration();
    const Time interval = cost_.interval(step);
    const Time end = std::max(now_ + step, last_end_ + interval);
    record(now_, end);
    flights_.push_back({tick, now_, end});
    last_end_ = end;
    now_ += interval;
  }
}

}  // namespace orrery::serving
