// SPDX-License-Identifier: Apache-2.0
#include "serving/driver.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "serving/steady.h"

namespace orrery::serving {
namespace {

Time first_arrival(const std::vector<requests::Request>& requests) {
  return requests.empty() ? Time(0) : requests.front().arrival;
}

bool computes_prompt(const scheduler::Scheduled& entry) {
  return entry.tokens > 1 + entry.drafts;
}

std::int64_t used_blocks(const std::vector<Copy>& copies) {
  return std::accumulate(
      copies.begin(), copies.end(), std::int64_t{0},
      [](std::int64_t sum, const Copy& copy) { return sum + copy.scheduler->book().used(); });
}

}  // namespace

Driver::Driver(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
               Inbox& inbox, const ServeOptions& options)
    : run_(run),
      cost_(cost),
      requests_(requests),
      inbox_(inbox),
      options_(options),
      copies_(static_cast<std::size_t>(run.engine.dp)),
      shapes_(run.engine, cost, copies_.size()),
      measures_(run, first_arrival(requests), run.kv_blocks * run.engine.dp, options.most_steps),
      ticks_(copies_.size()),
      next_(copies_.size()) {
  const Engine& engine = run_.engine;
  const Bytes block = run_.cache.per_token * engine.block_size;
  for (Copy& copy : copies_) {
    scheduler::KvBook book(run_.kv_blocks, engine.block_size, engine.prefix);
    if (options.tell_blocks) {
      book.record(copy.changes);
    }
    copy.scheduler = scheduler::make_scheduler(engine.policy, limits_of(engine), std::move(book));
    if (!run_.kv_tiers.empty()) {
      copy.tiers.emplace(run_.kv_tiers, block, engine.tp * engine.cp * engine.pp);
      copy.scheduler->fetch_from(*copy.tiers);
    }
  }
  for (const KvTier& tier : run_.kv_tiers) {
    if (tier.name == kRemoteTier && copies_.size() > 1) {
      share(std::make_shared<KvStore>(tier.capacity, tier.store), block);
    }
  }
}

void Driver::run_until(Time horizon) {
  horizon_ = horizon;
  if (run_.engine.pp > 1) {
    go_pipelined();
  } else if (copies_.front().scheduler->limits().lookahead) {
    go_ahead();
  } else {
    go_synchronous();
  }
}

Time Driver::clock() const {
  if (flights_.empty()) {
    return stalled_ ? Time::max() : now_;
  }
  const Time landing = flights_.front().end;
  return std::ssize(flights_) >= run_.engine.pp ? landing
                                                : std::min(landing, waiting_ ? next_event() : now_);
}

void Driver::poke(Time at) {
  if (stalled_ || waiting_) {
    stalled_ = waiting_ = false;
    now_ = std::max(now_, at);
  }
}

bool Driver::takes(const requests::Request& request) const {
  return spec_of(request, run_, *copies_.front().scheduler).has_value();
}

std::int64_t Driver::cached_tokens(const requests::Request& request) const {
  const scheduler::Scheduler& scheduler = *copies_[emptiest(copies_)].scheduler;
  const auto spec = spec_of(request, run_, scheduler);
  return spec ? scheduler.cached_tokens(*spec) : 0;
}

void Driver::share(const std::shared_ptr<KvStore>& store, Bytes block) {
  for (Copy& copy : copies_) {
    copy.tiers->share(store, block);
  }
}

void Driver::add(std::size_t number, std::size_t copy, const Served& served, Time token) {
  Copy& its = copies_[copy];
  places_.push_back({number, copy, static_cast<scheduler::RequestIndex>(its.served.size())});
  its.served.push_back(run_.requests.size());
  its.token.push_back(token);
  its.preempted.push_back(0);
  its.holders.push_back(0);
  ++its.unfinished;
  if (const auto& images = requests_[number].images; !images.empty()) {
    its.images.emplace(places_.back().index, images);
  }
  run_.requests.push_back(served);
}

std::optional<std::size_t> Driver::expect(std::size_t number, const requests::Request& request,
                                          const Served& served) {
  std::vector<std::size_t> order(copies_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t copy) { return copies_[copy].unfinished; });
  for (const std::size_t copy : order) {
    auto spec = spec_of(request, run_, *copies_[copy].scheduler);
    if (spec && copies_[copy].scheduler->expect(std::move(*spec))) {
      add(number, copy, served, served.first);
      run_.requests.back().output = answer_of(request, run_.engine);
      run_.requests.back().last = Time(0);
      return run_.requests.size() - 1;
    }
  }
  return std::nullopt;
}

void Driver::deliver(std::size_t served) {
  const Place& place = places_[served];
  copies_[place.copy].scheduler->deliver(place.index);
}

void Driver::let_go(std::size_t served) {
  const Place& place = places_[served];
  release(copies_[place.copy], place.index);
}

const scheduler::RequestState& Driver::state_of(std::size_t served) const {
  const Place& place = places_[served];
  return copies_[place.copy].scheduler->request(place.index);
}

void Driver::finish() {
  measures_.finish();
  for (const Copy& copy : copies_) {
    assert((only_prefill_ || now_.is_overflow() || !goes_on(options_) ||
            (copy.scheduler->waiting().empty() && copy.scheduler->running().empty())) &&
           "all that joined ended");
    run_.totals += copy.scheduler->totals();
    run_.written_blocks += copy.tiers ? copy.tiers->written_blocks() : 0;
  }
  run_.totals.ticks = steps_;
  for (std::size_t i = 0; i < run_.requests.size(); ++i) {
    run_.requests[i] = served(i);
  }
}

Served Driver::served(std::size_t number) const {
  const scheduler::RequestState& state = state_of(number);
  Served served = run_.requests[number];
  served.cached = state.cached;
  served.lost = state.lost;
  served.preemptions = state.preemptions;
  return served;
}

void Driver::end_copies(Copy& copy, Time now) {
  if (!copy.tiers || copy.tiers->next() > now) {
    return;
  }
  for (const KvTiers::Done& done : copy.tiers->advance(now)) {
    if (!done.fetched) {
      release(copy, done.request);
      inbox_.freed(now);
      continue;
    }
    copy.scheduler->fetched(done.request);
    run_.requests[copy.served[static_cast<std::size_t>(done.request)]].fetching += now - done.asked;
  }
}

bool Driver::schedule(Ticks& ticks) {
  bool any = false;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    const scheduler::Tick& tick = copy.scheduler->schedule();
    for (const scheduler::Fetch& fetch : tick.fetches) {
      copy.tiers->fetch(now_, fetch);
    }
    ticks[i] = &tick;
    any = any || !tick.empty();
    for (const scheduler::KvChange& change : copy.changes) {
      const std::size_t request =
          change.stored ? places_[copy.served[static_cast<std::size_t>(change.request)]].number : 0;
      inbox_.changed(static_cast<std::int64_t>(i), now_, request, change);
    }
    copy.changes.clear();
  }
  return any;
}

Time Driver::next_event() const {
  Time next = inbox_.next();
  for (const Copy& copy : copies_) {
    next = copy.tiers ? std::min(next, copy.tiers->next()) : next;
  }
  return next;
}

bool Driver::wait() {
  const Time next = next_event();
  stalled_ = next.is_overflow();
  if (!stalled_) {
    now_ = next;
  }
  return !stalled_;
}

Time Driver::duration(std::int64_t copied) {
  const Time copies = copied * run_.adapter_copy;
  const Time accelerator = shapes_.accelerator();
  run_.copying += copies;
  run_.busy += accelerator;
  run_.drawn += shapes_.energy();
  Time shared = accelerator;
  for (std::size_t dimension = 0; dimension < met_.size(); ++dimension) {
    if (met_[dimension] > 0) {
      shared += shapes_.collectives(static_cast<int>(dimension));
    }
  }
  alone_ = copies + with_host(run_.engine, accelerator, shapes_.most_requests());
  return copies + with_host(run_.engine, shared, shapes_.most_requests());
}

void Driver::meet(int dimension, std::int64_t more) {
  const auto place = static_cast<std::size_t>(dimension);
  met_.resize(std::max(met_.size(), place + 1));
  met_[place] += more;
}

double Driver::collective_share(int dimension) const {
  const bool waits = stalled_ || alone_ == Time(0) ||
                     std::ranges::all_of(copies_, [](const Copy& c) { return c.unfinished == 0; });
  return waits ? 0 : shapes_.collectives(dimension) / alone_;
}

void Driver::mark_scheduled(const Ticks& ticks, Time begin) {
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    for (const scheduler::Scheduled& entry : ticks[i]->entries) {
      const auto index = static_cast<std::size_t>(entry.request);
      if (copies_[i].token[index].is_overflow()) {
        Time& scheduled = run_.requests[copies_[i].served[index]].scheduled;
        scheduled = std::min(scheduled, begin);
      }
    }
  }
}

void Driver::add_token(Copy& copy, const scheduler::Scheduled& entry, Time end, bool beside) {
  const auto index = static_cast<std::size_t>(entry.request);
  const Time before = std::exchange(copy.token[index], end);
  measures_.on_tokens(end, 1);
  bool stalled = false;
  if (copy.scheduler->totals().preemptions > 0) {
    const int preemptions = copy.scheduler->request(entry.request).preemptions;
    stalled = std::exchange(copy.preempted[index], preemptions) < preemptions;
  }
  if (before.is_overflow()) {
    run_.requests[copy.served[index]].first = end;
    return;
  }
  measures_.on_gaps(end - before, 1);
  if (stalled || beside) {
    Served& served = run_.requests[copy.served[index]];
    const Time gap = end - before - (before == served.first ? served.moved : Time(0));
    (stalled ? served.stalled : served.beside) += gap;
  }
}

void Driver::complete(const Ticks& ticks, Time end) {
  const bool beside = std::any_of(ticks.begin(), ticks.end(), [](const scheduler::Tick* tick) {
    return std::any_of(tick->entries.begin(), tick->entries.end(), computes_prompt);
  });
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    Copy& copy = copies_[i];
    for (const scheduler::Scheduled& entry : ticks[i]->entries) {
      if (entry.emits) {
        add_token(copy, entry, end, beside);
      }
    }
    copy.finished.clear();
    copy.scheduler->complete(*ticks[i], copy.finished);
    for (const scheduler::Scheduled& entry : ticks[i]->entries) {
      if (entry.emits) {
        const scheduler::RequestState& state = copy.scheduler->request(entry.request);
        const Place& place = places_[copy.served[static_cast<std::size_t>(entry.request)]];
        inbox_.emitted(place.number, end, std::min(state.emitted(), state.spec.output));
      }
    }
  }
  measures_.on_blocks(end, used_blocks(copies_));
  const std::size_t before = ended_;
  for (Copy& copy : copies_) {
    end_requests(copy, end);
  }
  end_aborted(end);
  ++steps_;
  if (beside) {
    held_.look(steps_);
  }
  run_.duration = std::max(run_.duration, end);
  constexpr std::size_t kReportEvery = 4096;
  if (options_.progress && ended_ / kReportEvery > before / kReportEvery) {
    options_.progress(static_cast<double>(ended_) / static_cast<double>(requests_.size()));
  }
}

void Driver::end_requests(Copy& copy, Time end) {
  for (const scheduler::RequestIndex index : copy.finished) {
    const auto place = static_cast<std::size_t>(index);
    run_.requests[copy.served[place]].last = end;
    if (copy.tiers) {
      ++copy.holders[place];
      if (!copy.tiers->write(end, index, copy.scheduler->keys_of(index))) {
        release(copy, index);
      }
    }
    inbox_.ended(places_[copy.served[place]].number, end);
    --copy.unfinished;
    ++ended_;
  }
}

void Driver::abort(std::size_t served, Time at) {
  aborting_.push_back(served);
  end_aborted(at);
}

void Driver::end_aborted(Time now) {
  std::erase_if(aborting_, [&](std::size_t served) {
    if (served >= places_.size()) {
      return false;  // on its way to the queue
    }
    const Place& place = places_[served];
    Copy& copy = copies_[place.copy];
    if (copy.scheduler->request(place.index).finished) {
      return true;  // with a token that was on the way
    }
    if (!copy.scheduler->abort(place.index)) {
      return false;
    }
    run_.requests[served].last = now;
    --copy.unfinished;
    ++ended_;
    inbox_.ended(place.number, now);
    return true;
  });
}

/// One who needed the blocks of a request that has ended does no longer.
void Driver::release(Copy& copy, scheduler::RequestIndex index) {
  if (--copy.holders[static_cast<std::size_t>(index)] == 0) {
    copy.scheduler->let_go(index);
  }
}

Measures::State Driver::load() const {
  Measures::State state{.blocks = used_blocks(copies_)};
  for (const Copy& copy : copies_) {
    state.running += std::ssize(copy.scheduler->running());
    state.waiting += static_cast<std::int64_t>(copy.scheduler->waiting().size());
  }
  return state;
}

void Driver::record(Time begin, Time end) {
  if (shapes_.images() > 0) {
    run_.images += shapes_.images();
    run_.encoding += shapes_.encoding();
  }
  measures_.on_step({begin, end, shapes_.tokens(), shapes_.requests()}, load());
}

}  // namespace orrery::serving
