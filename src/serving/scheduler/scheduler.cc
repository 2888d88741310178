// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery::scheduler {
namespace {

/// Returns how many of a decode's guesses are right: the same whatever runs beside it.
std::int64_t accepted(RequestIndex index, std::int64_t known, std::int64_t drafts,
                      double acceptance) {
  const std::uint64_t request = mixed(static_cast<std::uint64_t>(index));
  std::int64_t right = 0;
  for (; right < drafts; ++right) {
    const auto token = static_cast<std::uint64_t>(known + right);
    if (static_cast<double>(mixed(request + token) >> 11U) * 0x1.0p-53 >= acceptance) {
      break;
    }
  }
  return right;
}

/// Takes a request back out of a tick.
void withdraw(Tick& tick, RequestIndex index, RequestState& request) {
  const auto found = std::find_if(tick.entries.begin(), tick.entries.end(),
                                  [&](const Scheduled& entry) { return entry.request == index; });
  if (found == tick.entries.end()) {
    return;
  }
  request.computed -= found->tokens;
  --request.in_flight;
  request.placeholders -= found->emits ? 1 : 0;
  tick.tokens -= found->tokens;
  tick.entries.erase(found);
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
  for (std::int64_t Totals::*count :
       {&Totals::scheduled_tokens, &Totals::cached_tokens, &Totals::lost_tokens,
        &Totals::preemptions, &Totals::ticks, &Totals::drafts, &Totals::drafted_tokens,
        &Totals::accepted_tokens, &Totals::fetched_tokens, &Totals::copied_adapters}) {
    this->*count += other.*count;
  }
  return *this;
}

RequestIndex Scheduler::add(RequestSpec spec) {
  const auto index = static_cast<RequestIndex>(requests_.size());
  RequestState& request = requests_.emplace_back();
  request.known = spec.prompt;
  request.spec = std::move(spec);
  waiting_.push_back(index);
  if (limits_.adapters > 0) {
    admission_blocked_ = false;  // it may pass those whose adapter has no room
  }
  return index;
}

std::optional<RequestIndex> Scheduler::expect(RequestSpec spec) {
  const bool starved = first_without_blocks() != waiting_.end();
  const auto index = static_cast<RequestIndex>(requests_.size());
  RequestState request;
  request.known = spec.prompt + 1;
  request.spec = std::move(spec);
  const KvBook::Hit hit = book_.find(request, index);
  if (starved || !book_.reserve(request, index, hit, tokens_to_expect(request.spec))) {
    return std::nullopt;
  }
  request.cached = static_cast<std::int64_t>(hit.blocks.size()) * book_.block_size();
  totals_.cached_tokens += request.cached;
  requests_.push_back(std::move(request));
  return index;
}

void Scheduler::deliver(RequestIndex index) {
  RequestState& request = state(index);
  request.computed = request.spec.prompt;
  book_.publish(request, request.computed);
  waiting_.insert(first_without_blocks(), index);
  admission_blocked_ = false;  // it has blocks: the next tick looks at it
}

std::int64_t Scheduler::cached_tokens(const RequestSpec& spec) const {
  RequestState request;
  request.spec = spec;
  request.known = spec.prompt;
  const auto blocks = book_.find(request, static_cast<RequestIndex>(requests_.size())).blocks;
  return static_cast<std::int64_t>(blocks.size()) * book_.block_size();
}

std::deque<RequestIndex>::iterator Scheduler::first_without_blocks() {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [&](RequestIndex index) { return state(index).blocks.empty(); });
}

void Scheduler::fetched(RequestIndex index) {
  RequestState& request = state(index);
  request.computed = std::exchange(request.fetching, 0);
  request.cached += request.computed;
  totals_.cached_tokens += request.computed;
  book_.publish(request, request.computed);
  waiting_.insert(first_without_blocks(), index);
  admission_blocked_ = false;
}

std::vector<std::uint64_t> Scheduler::keys_of(RequestIndex index) const {
  const RequestState& request = requests_[static_cast<std::size_t>(index)];
  std::vector<std::uint64_t> keys;
  for (std::int64_t i = 0; i < request.computed / book_.block_size(); ++i) {
    const std::uint64_t key = book_.key_of(request.spec.prefix, i);
    if (key == 0) {
      break;
    }
    keys.push_back(key);
  }
  return keys;
}

void Scheduler::let_go(RequestIndex index) {
  book_.release(state(index), false);
  admission_blocked_ = false;
}

bool Scheduler::abort(RequestIndex index) {
  RequestState& request = state(index);
  assert(!request.finished && "it has its answer");
  request.spec.output = request.promised();
  if (request.in_flight > 0 || request.fetching > 0) {
    return false;
  }
  request.finished = true;
  std::erase(waiting_, index);
  std::erase(running_, index);
  leave(request);
  book_.release(request, false);
  admission_blocked_ = false;
  return true;
}

bool Scheduler::can_ever_run(const RequestSpec& spec) const {
  // The last generated token is never computed.
  return book_.blocks_of(spec, spec.prompt + spec.output - 1) <= book_.blocks() &&
         (limits_.chunked_prefill ||
          spec.prompt + spec.output - 1 <= limits_.max_num_batched_tokens);
}

Tick& Scheduler::schedule() {
  Tick& tick = ticks_[next_tick_];
  next_tick_ = (next_tick_ + 1) % ticks_.size();
  tick.entries.clear();
  tick.fetches.clear();
  tick.tokens = 0;
  tick.preempted = 0;
  admission_blocked_ = false;
  copied_ = 0;
  form(tick);
  tick.copied = copied_;
  totals_.copied_adapters += copied_;
  totals_.scheduled_tokens += tick.tokens;
  totals_.ticks += tick.empty() ? 0 : 1;
  return tick;
}

void Scheduler::complete(const Tick& tick, std::vector<RequestIndex>& finished) {
  bool left = false;
  for (const Scheduled& entry : tick.entries) {
    RequestState& request = state(entry.request);
    --request.in_flight;
    if (!entry.emits) {
      continue;
    }
    const std::int64_t right =
        entry.drafts > 0 ? accepted(entry.request, request.known, entry.drafts, limits_.acceptance)
                         : 0;
    request.known += 1 + right;
    request.computed -= request.running ? entry.drafts - right : 0;
    totals_.drafts += entry.drafts > 0 ? 1 : 0;
    totals_.drafted_tokens += entry.drafts;
    totals_.accepted_tokens += right;
    --request.placeholders;
    if (request.emitted() >= request.spec.output) {
      request.finished = true;
      if (!request.running) {  // preempted with its last token on the way
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), entry.request));
      }
      leave(request);
      left = true;
      if (!request.spec.keeps_blocks) {
        book_.release(request, false);
      }
      finished.push_back(entry.request);
    }
  }
  if (left) {
    admission_blocked_ = false;
    running_.erase(std::remove_if(running_.begin(), running_.end(),
                                  [&](RequestIndex index) { return !state(index).running; }),
                   running_.end());
  }
}

std::int64_t Scheduler::ready_tokens(const RequestState& request) const {
  if (request.promised() >= request.spec.output) {
    return 0;  // its last token is on the way
  }
  const std::int64_t placeholders = limits_.lookahead ? request.placeholders : 0;
  const std::int64_t known = request.known + placeholders - request.computed;
  const bool decodes = known == 1 && request.emitted() > 0;
  return std::max<std::int64_t>(0, known) +
         (decodes ? std::min(limits_.drafts, request.spec.output - request.promised() - 1) : 0);
}

void Scheduler::put(Tick& tick, RequestIndex index, std::int64_t tokens) {
  RequestState& request = state(index);
  // In place: a copy of what was written in pieces would wait for the writes.
  Scheduled& entry = tick.entries.emplace_back();
  entry.request = index;
  entry.tokens = tokens;
  entry.context = request.computed;
  request.computed += tokens;
  ++request.in_flight;
  entry.emits = request.computed >= request.known + request.placeholders;
  entry.drafts =
      limits_.drafts > 0 ? std::max<std::int64_t>(0, request.computed - request.known) : 0;
  request.placeholders += entry.emits ? 1 : 0;
  book_.publish(request, std::min(request.computed, request.known));
  tick.tokens += tokens;
}

void Scheduler::preempt(Tick& tick, RequestIndex index) {
  RequestState& request = state(index);
  withdraw(tick, index, request);
  const bool ends = request.promised() >= request.spec.output;  // its last token is on the way
  const std::int64_t lost = ends ? 0 : request.computed;
  request.lost += lost;
  totals_.lost_tokens += lost;
  ++request.preemptions;
  ++totals_.preemptions;
  ++tick.preempted;
  book_.release(request, true);
  request.computed = 0;
  leave(request);
  running_.erase(std::find(running_.begin(), running_.end(), index));
  waiting_.insert(first_without_blocks(), index);
}

void Scheduler::give_back(RequestIndex index) {
  RequestState& request = state(index);
  assert(!request.running && request.fetching == 0 && "it waits with what was delivered");
  request.lost += request.computed;
  totals_.lost_tokens += request.computed;
  book_.release(request, true);
  request.computed = 0;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), index));
  waiting_.insert(first_without_blocks(), index);
}

Scheduler::Entry Scheduler::entry_of(RequestIndex index) const {
  const RequestState& request = requests_[static_cast<std::size_t>(index)];
  Entry entry;
  if (request.blocks.empty()) {
    entry.hit = book_.find(request, index);
    entry.blocks = static_cast<std::int64_t>(entry.hit.blocks.size());
    entry.computed = entry.blocks * book_.block_size();
  } else {  // delivered
    entry.blocks = static_cast<std::int64_t>(request.blocks.size() + request.fixed.size());
    entry.computed = request.computed;
  }
  entry.missing = request.known - entry.computed;
  return entry;
}

std::optional<RequestIndex> Scheduler::next_waiting(Tick& tick) {
  for (std::size_t i = 0; i < waiting_.size();) {
    const RequestIndex index = waiting_[i];
    if (!adapter_fits(index)) {
      ++i;
      continue;
    }
    switch (begin_fetch(tick, index)) {
      case Fetching::none:
        return index;
      case Fetching::no_room:
        admission_blocked_ = true;
        return std::nullopt;
      case Fetching::begun:
        break;
    }
  }
  admission_blocked_ = admission_blocked_ || !waiting_.empty();
  return std::nullopt;
}

Scheduler::Fetching Scheduler::begin_fetch(Tick& tick, RequestIndex index) {
  RequestState& request = state(index);
  if (tiers_ == nullptr || !request.blocks.empty()) {
    return Fetching::none;
  }
  const KvBook::Hit hit = book_.find(request, index);
  Fetch fetch{.request = index, .keys = {}};
  const auto first = static_cast<std::int64_t>(hit.blocks.size());
  for (std::int64_t i = first; i < (request.known - 1) / book_.block_size(); ++i) {
    const std::uint64_t key = book_.key_of(request.spec.prefix, i);
    if (key == 0 || !tiers_->holds(key)) {
      break;
    }
    fetch.keys.push_back(key);
  }
  if (fetch.keys.empty()) {
    return Fetching::none;
  }
  if (!book_.reserve(request, index, hit, tokens_to_fetch(request))) {
    return Fetching::no_room;
  }
  const auto blocks = static_cast<std::int64_t>(fetch.keys.size());
  request.fetching = (first + blocks) * book_.block_size();
  totals_.fetched_tokens += blocks * book_.block_size();
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), index));
  tick.fetches.push_back(std::move(fetch));
  return Fetching::begun;
}

bool Scheduler::adapter_fits(RequestIndex index) const {
  const std::int32_t adapter = request(index).spec.adapter;
  return adapter < 0 || adapters_.fits(adapter, Bytes(1));
}

void Scheduler::leave(RequestState& request) {
  if (request.running && request.spec.adapter >= 0) {
    adapters_.unpin(request.spec.adapter);
  }
  request.running = false;
}

bool Scheduler::admit(RequestIndex index, const Entry& entry, std::int64_t reserved) {
  RequestState& request = state(index);
  if (!request.blocks.empty()) {
    if (!book_.reserve(request, index, reserved)) {
      return false;
    }
  } else if (book_.reserve(request, index, entry.hit, reserved)) {
    request.computed = entry.computed;
    request.cached += entry.computed;
    totals_.cached_tokens += entry.computed;
  } else {
    return false;
  }
  request.running = true;
  if (const std::int32_t adapter = request.spec.adapter; adapter >= 0) {
    const auto use = adapters_.use(adapter, Bytes(1));
    assert(use && "next_waiting() has looked");
    copied_ += use->copied.value();
    adapters_.pin(adapter);
  }
  if (waiting_.front() == index) {
    waiting_.pop_front();
  } else {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), index));
  }
  running_.push_back(index);
  return true;
}

}  // namespace orrery::scheduler
