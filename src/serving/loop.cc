// SPDX-License-Identifier: Apache-2.0
#include "serving/loop.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace orrery::serving {
namespace {

constexpr Time kSamplePeriod = from_seconds(1);

}  // namespace

scheduler::Limits limits_of(const Engine& engine) {
  return {.max_num_batched_tokens = engine.max_num_batched_tokens,
          .max_num_seqs = engine.max_num_seqs,
          .long_prefill_token_threshold = engine.long_prefill_token_threshold,
          .chunked_prefill = engine.chunked_prefill,
          .reserve_full_isl = engine.reserve_full_isl,
          .lookahead = engine.async && engine.pp == 1 && engine.dp == 1,
          .watermark = engine.watermark};
}

void fill_shape(const scheduler::Tick& tick, const std::vector<std::int64_t>& windows,
                step::StepShape& shape) {
  shape.tokens = tick.tokens;
  shape.samples = static_cast<std::int64_t>(tick.entries.size());
  shape.prompts.clear();
  shape.decodes = 0;
  shape.visible.assign(windows.size(), 0);
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (entry.tokens > 1) {
      shape.prompts.push_back({.queries = entry.tokens, .context = entry.context});
      continue;
    }
    ++shape.decodes;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      const std::int64_t keys = entry.context + 1;
      shape.visible[w] += static_cast<double>(windows[w] > 0 ? std::min(keys, windows[w]) : keys);
    }
  }
}

Loop::Loop(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
           const ServeOptions& options)
    : run_(run), cost_(cost), requests_(requests), options_(options) {
  const Engine& engine = run_.engine;
  scheduler_ = scheduler::make_scheduler(
      engine.policy, limits_of(engine),
      scheduler::KvBook(run_.kv_blocks, engine.block_size, engine.prefix));
  run_.requests.resize(requests.size());
  request_of_.reserve(requests.size());
  token_.reserve(requests.size());
  slots_.assign(static_cast<std::size_t>(options.max_concurrency), Time(0));
  shape_.visible.resize(cost_.windows().size());
  growing_.resize(cost_.windows().size());
}

void Loop::go() {
  if (run_.engine.pp > 1) {
    go_pipelined();
  } else if (run_.engine.async) {
    go_asynchronous();
  } else {
    go_synchronous();
  }
  assert(scheduler_->waiting().empty() && scheduler_->running().empty() && "all that joined ended");
  run_.totals = scheduler_->totals();
  for (std::size_t i = 0; i < request_of_.size(); ++i) {
    const scheduler::RequestState& state =
        scheduler_->request(static_cast<scheduler::RequestIndex>(i));
    Served& served = run_.requests[request_of_[i]];
    served.cached = state.cached;
    served.lost = state.lost;
    served.preemptions = state.preemptions;
  }
  std::erase_if(run_.requests, [](const Served& served) { return served.output == 0; });
}

Time Loop::next_sent() const {
  if (all_sent() || (options_.max_concurrency > 0 && slots_.empty())) {
    return Time::max();
  }
  const Time arrival = requests_[next_].arrival;
  return slots_.empty() ? arrival : std::max(arrival, slots_.front());
}

void Loop::free_slot(Time at) {
  if (options_.max_concurrency > 0) {
    slots_.push_back(at + options_.think);
  }
}

void Loop::enqueue(Time now) {
  for (Time sent = next_sent(); sent <= now && !sent.is_overflow(); sent = next_sent()) {
    if (!slots_.empty()) {
      slots_.pop_front();
    }
    arriving_.emplace_back(sent + run_.engine.front_end, next_);
    run_.requests[next_].sent = sent;
    ++next_;
  }
  while (!arriving_.empty() && arriving_.front().first <= now) {
    const auto [queued, index] = arriving_.front();
    arriving_.pop_front();
    const requests::Request& request = requests_[index];
    scheduler::RequestSpec spec{
        .prompt = request.input,
        .output = std::min(request.output, run_.engine.max_model_len - request.input),
        .prefix = {.ids = request.ids, .id_tokens = request.id_tokens, .tokens = request.shared}};
    if (spec.output < 1 || !scheduler_->can_ever_run(spec)) {
      ++run_.refused;
      free_slot(queued);
      continue;
    }
    Served& served = run_.requests[index];
    served.input = spec.prompt;
    served.output = spec.output;
    served.queued = queued;
    served.scheduled = Time::max();
    request_of_.push_back(index);
    token_.push_back(Time::max());
    scheduler_->add(std::move(spec));
  }
}

Time Loop::next_queued() const {
  if (!arriving_.empty()) {
    return arriving_.front().first;
  }
  const Time sent = next_sent();
  return sent + run_.engine.front_end;
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
  const Engine& engine = run_.engine;
  const Time accelerator = cost_.time(shape_);
  const Time host = engine.step + engine.per_request * shape_.samples;
  run_.busy += accelerator;
  return engine.async ? std::max(accelerator + engine.gap, host) : accelerator + engine.gap + host;
}

void Loop::mark_scheduled(const scheduler::Tick& tick, Time begin) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    Served& served = run_.requests[request_of_[static_cast<std::size_t>(entry.request)]];
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
      run_.requests[request_of_[index]].first = end;
    } else {
      add_gap(end - token_[index], 1);
    }
    token_[index] = end;
  }
  finished_.clear();
  scheduler_->complete(tick, finished_);
  for (const scheduler::RequestIndex index : finished_) {
    run_.requests[request_of_[static_cast<std::size_t>(index)]].last = end;
    free_slot(end);
  }
  run_.duration = std::max(run_.duration, end);
  reported_ += finished_.size();
  constexpr std::uint64_t kReportEvery = 4096;
  if (options_.progress && reported_ >= kReportEvery) {
    reported_ = 0;
    options_.progress(static_cast<double>(next_) / static_cast<double>(requests_.size()));
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

std::int64_t Loop::decode_run(Time& now, std::int64_t most) {
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
    if (token_[static_cast<std::size_t>(index)] != now) {
      return 0;  // it missed a step: the next one is not like the others
    }
  }
  const bool open = scheduler_->open();
  const Time arrival = open ? next_queued() : Time::max();
  std::int64_t done = 0;
  while (done < most && now < arrival) {
    const Time busy = run_.busy;
    const Time step = duration();
    if (now + step >= next_sample_) {  // what is sampled is what stepping finds
      run_.busy = busy;
      break;
    }
    record(now, now + step);
    now += step;
    add_gap(step, requests);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      shape_.visible[w] += static_cast<double>(growing_[w]);
    }
    ++done;
  }
  for (const scheduler::RequestIndex index : scheduler_->running()) {
    token_[static_cast<std::size_t>(index)] = now;
  }
  if (done > 0) {
    scheduler_->skip(done);
    run_.duration = std::max(run_.duration, now);
  }
  return done;
}

void Loop::go_synchronous() {
  Time now{0};
  for (;;) {
    enqueue(now);
    const scheduler::Tick& tick = scheduler_->schedule();
    if (tick.empty()) {
      now = next_queued();
      if (now.is_overflow()) {
        return;
      }
      continue;
    }
    mark_scheduled(tick, now);
    shape_of(tick);
    const bool decodes = options_.skip && only_decodes(tick);
    const Time end = now + duration();
    record(now, end);
    complete(tick, end);
    now = end;
    if (!decodes || !finished_.empty()) {
      continue;
    }
    enqueue(now);
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
    decode_run(now, steady);
  }
}

void Loop::go_asynchronous() {
  Time now{0};
  scheduler::Tick* current = nullptr;
  for (;;) {
    enqueue(now);
    if (current == nullptr) {
      scheduler::Tick& tick = scheduler_->schedule();
      if (tick.empty()) {
        now = next_queued();
        if (now.is_overflow()) {
          return;
        }
        continue;
      }
      current = &tick;
    }
    shape_of(*current);
    if (options_.skip && only_decodes(*current)) {
      const std::int64_t steady = scheduler_->steady_ticks();
      if (steady > 0 && decode_run(now, steady) > 0) {
        continue;  // `current` is the last tick of the run now
      }
    }
    mark_scheduled(*current, now);
    const Time end = now + duration();
    record(now, end);
    scheduler::Tick& next = scheduler_->schedule();
    complete(*current, end);
    current = next.empty() ? nullptr : &next;
    now = end;
  }
}

void Loop::go_pipelined() {
  const auto stages = static_cast<std::size_t>(run_.engine.pp);
  std::deque<Flight> flights;
  Time now{0};       // when the first stage is free
  Time last_end{0};  // of the step before
  Time last_interval{0};
  const auto finish = [&] {
    complete(flights.front().tick, flights.front().end);
    flights.pop_front();
  };
  for (;;) {
    while (!flights.empty() && (flights.front().end <= now || flights.size() >= stages)) {
      now = std::max(now, flights.front().end);
      finish();
    }
    enqueue(now);
    const scheduler::Tick& tick = scheduler_->schedule();
    if (tick.empty()) {
      const Time arrival = next_queued();
      if (!flights.empty() && flights.front().end <= arrival) {
        now = std::max(now, flights.front().end);
        finish();
      } else if (arrival.is_overflow()) {
        return;
      } else {
        now = arrival;
      }
      continue;
    }
    mark_scheduled(tick, now);
    shape_of(tick);
    const Time step = duration();
    last_interval = cost_.interval(step);
    const Time end = std::max(now + step, last_end + last_interval);
    record(now, end);
    flights.push_back({tick, now, end});
    last_end = end;
    now += last_interval;
  }
}

}  // namespace orrery::serving
