// SPDX-License-Identifier: Apache-2.0
#include "serving/loop.h"

#include <algorithm>
#include <cassert>
#include <utility>

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
  shape.longest = 0;
  shape.queries = 1;
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (entry.tokens > 1 + entry.drafts) {
      shape.prompts.push_back({.queries = entry.tokens, .context = entry.context});
      continue;
    }
    ++shape.decodes;
    shape.queries = std::max(shape.queries, entry.tokens);
    const std::int64_t keys = entry.context + 1;
    shape.longest = std::max(shape.longest, static_cast<double>(keys));
    for (std::size_t w = 0; w < windows.size(); ++w) {
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
  if (!run_.kv_tiers.empty()) {
    tiers_.emplace(run_.kv_tiers, run_.cache.per_token * engine.block_size,
                   engine.tp * engine.cp * engine.pp);
    scheduler_->fetch_from(*tiers_);
  }
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
  auto spec = spec_of(request, run_, *scheduler_);
  if (!spec || !scheduler_->expect(std::move(*spec))) {
    return std::nullopt;
  }
  run_.requests.push_back(served);
  run_.requests.back().output = answer_of(request, run_.engine);
  number_of_.push_back(number);
  token_.push_back(served.first);
  preempted_.push_back(0);
  return run_.requests.size() - 1;
}

void Loop::finish() {
  assert((now_.is_overflow() || (scheduler_->waiting().empty() && scheduler_->running().empty())) &&
         "all that joined ended");
  hold(std::max(run_.duration, held_since_), 0);
  run_.kv_use_s = static_cast<double>(held_time_) / static_cast<double>(Time(1_s).value()) /
                  static_cast<double>(scheduler_->book().blocks());
  run_.totals = scheduler_->totals();
  run_.written_blocks = tiers_ ? tiers_->written_blocks() : 0;
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
  if (tiers_ && tiers_->next() <= now) {
    for (const KvTiers::Done& done : tiers_->advance(now)) {
      if (!done.fetched) {
        scheduler_->let_go(done.request);
        continue;
      }
      scheduler_->fetched(done.request);
      run_.requests[static_cast<std::size_t>(done.request)].fetching += now - done.asked;
    }
  }
  while (const auto delivery = inbox_.pop(now)) {
    auto spec = spec_of(requests_[delivery->request], run_, *scheduler_);
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
    preempted_.push_back(0);
    scheduler_->add(std::move(*spec));
  }
}

scheduler::Tick& Loop::schedule() {
  scheduler::Tick& tick = scheduler_->schedule();
  for (const scheduler::Fetch& fetch : tick.fetches) {
    tiers_->fetch(now_, fetch);
  }
  return tick;
}

Time Loop::next_event() const {
  return tiers_ ? std::min(inbox_.next(), tiers_->next()) : inbox_.next();
}

bool Loop::wait() {
  const Time next = next_event();
  stalled_ = next.is_overflow();
  if (!stalled_) {
    now_ = next;
  }
  return !stalled_;
}

void Loop::shape_of(const scheduler::Tick& tick) {
  const std::vector<std::int64_t>& windows = cost_.windows();
  fill_shape(tick, windows, shape_);
  if (run_.engine.adapter_slots > 0) {
    shape_.adapted = 0;
    different_.clear();
    for (const scheduler::Scheduled& entry : tick.entries) {
      const std::int32_t adapter = scheduler_->request(entry.request).spec.adapter;
      if (adapter >= 0 || run_.engine.whole_adapters) {
        shape_.adapted += entry.tokens;
        different_.push_back(adapter);
      }
    }
    std::sort(different_.begin(), different_.end());
    different_.erase(std::unique(different_.begin(), different_.end()), different_.end());
    shape_.adapters = static_cast<std::int64_t>(different_.size());
    if (run_.engine.whole_adapters) {
      shape_.adapted = 0;
      split_by_model(tick);
    }
  }
  growing_[0] = shape_.decodes;
  for (std::size_t w = 1; w < windows.size(); ++w) {
    growing_[w] = std::count_if(tick.entries.begin(), tick.entries.end(),
                                [&](const scheduler::Scheduled& entry) {
                                  return entry.tokens == 1 && entry.context + 1 < windows[w];
                                });
  }
}

void Loop::split_by_model(const scheduler::Tick& tick) {
  parts_.resize(different_.size());
  scheduler::Tick part;
  for (std::size_t i = 0; i < different_.size(); ++i) {
    part.entries.clear();
    part.tokens = 0;
    for (const scheduler::Scheduled& entry : tick.entries) {
      if (scheduler_->request(entry.request).spec.adapter == different_[i]) {
        part.entries.push_back(entry);
        part.tokens += entry.tokens;
      }
    }
    fill_shape(part, cost_.windows(), parts_[i]);
  }
}

Time Loop::duration(std::int64_t copied) {
  const Time copies = copied * run_.adapter_copy;
  run_.copying += copies;
  Time accelerator{0};
  if (run_.engine.whole_adapters) {  // one model after the other
    for (const step::StepShape& part : parts_) {
      accelerator += cost_.time(part);
    }
  } else {
    accelerator = cost_.time(shape_) + guessing(run_.engine, cost_, shape_);
  }
  run_.busy += accelerator;
  return copies + with_host(run_.engine, accelerator, shape_.samples);
}

void Loop::mark_scheduled(const scheduler::Tick& tick, Time begin) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    const auto index = static_cast<std::size_t>(entry.request);
    if (token_[index].is_overflow() && run_.requests[index].scheduled.is_overflow()) {
      run_.requests[index].scheduled = begin;
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

void Loop::add_token(const scheduler::Scheduled& entry, Time end, bool beside) {
  const auto index = static_cast<std::size_t>(entry.request);
  const Time before = std::exchange(token_[index], end);
  count_tokens(run_, requests_.front().arrival, end, 1);
  bool stalled = false;
  if (scheduler_->totals().preemptions > 0) {
    const int preemptions = scheduler_->request(entry.request).preemptions;
    stalled = std::exchange(preempted_[index], preemptions) < preemptions;
  }
  if (before.is_overflow()) {
    run_.requests[index].first = end;
    return;
  }
  add_gap(end - before, 1);
  if (stalled || beside) {
    Served& served = run_.requests[index];
    const Time gap = end - before - (before == served.first ? served.moved : Time(0));
    (stalled ? served.stalled : served.beside) += gap;
  }
}

void Loop::complete(const scheduler::Tick& tick, Time end) {
  const bool beside = std::any_of(
      tick.entries.begin(), tick.entries.end(),
      [](const scheduler::Scheduled& entry) { return entry.tokens > 1 + entry.drafts; });
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (entry.emits) {
      add_token(entry, end, beside);
    }
  }
  finished_.clear();
  scheduler_->complete(tick, finished_);
  hold(end, scheduler_->book().used());
  for (const scheduler::RequestIndex index : finished_) {
    run_.requests[static_cast<std::size_t>(index)].last = end;
    if (tiers_ && !tiers_->write(end, index, scheduler_->keys_of(index))) {
      scheduler_->let_go(index);
    }
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
  hold(begin, scheduler_->book().used());
  sample(end);
}

void Loop::hold(Time at, std::int64_t blocks) {
  held_time_ += static_cast<BlockTime>(held_) * (at - held_since_).value();
  held_ = blocks;
  held_since_ = at;
}

void Loop::sample(Time until) {
  const scheduler::KvBook& book = scheduler_->book();
  const double use = static_cast<double>(book.used()) / static_cast<double>(book.blocks());
  run_.peak_kv_use = std::max(run_.peak_kv_use, use);
  run_.peak_running = std::max(run_.peak_running, scheduler_->running_size());
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
  return tick.copied == 0 && !run_.engine.whole_adapters &&
         static_cast<std::int64_t>(tick.entries.size()) == scheduler_->running_size() &&
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
  Time until = scheduler_->open() ? std::min(horizon_, inbox_.next()) : horizon_;
  until = tiers_ ? std::min(until, tiers_->next()) : until;
  std::int64_t done = 0;
  std::int64_t blocks = scheduler_->book().used();
  const bool ahead = scheduler_->limits().lookahead;  // the first step's are given out already
  while (done < most && now_ < until) {
    const Time busy = run_.busy;
    const Time step = duration(0);
    if (now_ + step >= next_sample_) {  // what is sampled is what stepping finds
      run_.busy = busy;
      break;
    }
    record(now_, now_ + step);
    blocks += ahead ? 0 : scheduler_->steady_blocks(done);
    hold(now_, blocks);
    blocks += ahead ? scheduler_->steady_blocks(done) : 0;
    now_ += step;
    add_gap(step, requests);
    count_tokens(run_, requests_.front().arrival, now_, requests);
    for (std::size_t w = 0; w < windows.size(); ++w) {
      shape_.visible[w] += static_cast<double>(growing_[w]);
    }
    shape_.longest += 1;
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

}  // namespace orrery::serving
