// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/scheduler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace orrery::scheduler {

RequestIndex Scheduler::add(RequestSpec spec) {
  const auto index = static_cast<RequestIndex>(requests_.size());
  RequestState& request = requests_.emplace_back();
  request.known = spec.prompt;
  request.spec = std::move(spec);
  waiting_.push_back(index);
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

void Scheduler::let_go(RequestIndex index) {
  book_.release(state(index), false);
}

bool Scheduler::can_ever_run(const RequestSpec& spec) const {
  // The last generated token is never computed.
  return book_.blocks_of(spec.prompt + spec.output - 1) <= book_.blocks() &&
         (limits_.chunked_prefill ||
          spec.prompt + spec.output - 1 <= limits_.max_num_batched_tokens);
}

Tick& Scheduler::schedule() {
  Tick& tick = ticks_[next_tick_];
  next_tick_ = (next_tick_ + 1) % ticks_.size();
  tick.entries.clear();
  tick.tokens = 0;
  tick.preempted = 0;
  admission_blocked_ = false;
  form(tick);
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
    const std::int64_t right = entry.drafts > 0 ? accepted(entry.request, entry.drafts) : 0;
    request.known += 1 + right;
    request.computed -= request.running ? entry.drafts - right : 0;
    totals_.drafted_tokens += entry.drafts;
    totals_.accepted_tokens += right;
    --request.placeholders;
    if (request.emitted() >= request.spec.output) {
      request.finished = true;
      if (!request.running) {  // preempted with its last token on the way
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), entry.request));
      }
      request.running = false;
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

std::int64_t Scheduler::accepted(RequestIndex index, std::int64_t drafts) const {
  const std::uint64_t request = mixed(static_cast<std::uint64_t>(index));
  std::int64_t right = 0;
  for (; right < drafts; ++right) {
    const auto token = static_cast<std::uint64_t>(state(index).known + right);
    if (static_cast<double>(mixed(request + token) >> 11U) * 0x1.0p-53 >= limits_.acceptance) {
      break;
    }
  }
  return right;
}

void Scheduler::put(Tick& tick, RequestIndex index, std::int64_t tokens) {
  RequestState& request = state(index);
  Scheduled entry{.request = index, .tokens = tokens, .context = request.computed};
  request.computed += tokens;
  ++request.in_flight;
  entry.emits = request.computed >= request.known + request.placeholders;
  entry.drafts =
      limits_.drafts > 0 ? std::max<std::int64_t>(0, request.computed - request.known) : 0;
  request.placeholders += entry.emits ? 1 : 0;
  book_.publish(request, std::min(request.computed, request.known));
  tick.tokens += tokens;
  tick.entries.push_back(entry);
}

void Scheduler::withdraw(Tick& tick, RequestIndex index) {
  const auto found = std::find_if(tick.entries.begin(), tick.entries.end(),
                                  [&](const Scheduled& entry) { return entry.request == index; });
  if (found == tick.entries.end()) {
    return;
  }
  RequestState& request = state(index);
  request.computed -= found->tokens;
  --request.in_flight;
  request.placeholders -= found->emits ? 1 : 0;
  tick.tokens -= found->tokens;
  tick.entries.erase(found);
}

void Scheduler::preempt(Tick& tick, RequestIndex index) {
  withdraw(tick, index);
  RequestState& request = state(index);
  request.lost += request.computed;
  totals_.lost_tokens += request.computed;
  ++request.preemptions;
  ++totals_.preemptions;
  ++tick.preempted;
  book_.release(request, true);
  request.computed = 0;
  request.running = false;
  running_.erase(std::find(running_.begin(), running_.end(), index));
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
    entry.blocks = static_cast<std::int64_t>(request.blocks.size());
    entry.computed = request.computed;
  }
  entry.missing = request.known - entry.computed;
  return entry;
}

bool Scheduler::admit(RequestIndex index, const Entry& entry, std::int64_t reserved) {
  assert(waiting_.front() == index && "first come, first served");
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
  waiting_.pop_front();
  running_.push_back(index);
  return true;
}

std::int64_t Scheduler::steady_ticks() const {
  if (running_.empty() || !(waiting_.empty() || (admission_blocked_ && queue_waits_for_blocks()))) {
    return 0;
  }
  if (running_size() > limits_.max_num_batched_tokens) {
    return 0;
  }
  std::int64_t ticks = std::numeric_limits<std::int64_t>::max();
  // Requests by how many tokens their last block holds: n ticks later those that crossed its end
  // need another.
  const std::int64_t size = book_.block_size();
  fill_.assign(static_cast<std::size_t>(size), 0);
  std::int64_t spare = book_.free();
  for (const RequestIndex index : running_) {
    const RequestState& request = requests_[static_cast<std::size_t>(index)];
    if (ready_tokens(request) != 1 || request.placeholders != (limits_.lookahead ? 1 : 0)) {
      return 0;
    }
    ticks = std::min(ticks, request.spec.output - request.promised());
    const std::int64_t capacity = static_cast<std::int64_t>(request.blocks.size()) * size;
    const std::int64_t room = capacity - request.computed;
    if (room < size) {
      ++fill_[static_cast<std::size_t>(room)];
    } else {
      ticks = std::min(ticks, room);  // reserved ahead: looked at again then
    }
  }
  --ticks;  // the last one finishes a request
  const std::int64_t per_round = running_size();
  const std::int64_t rounds = per_round > 0 ? spare / per_round : 0;
  std::int64_t possible = rounds * size;
  spare -= rounds * per_round;
  for (std::int64_t room = 0; room < size; ++room) {  // the tick `room` from here needs them
    if (fill_[static_cast<std::size_t>(room)] > spare) {
      break;
    }
    spare -= fill_[static_cast<std::size_t>(room)];
    ++possible;
  }
  return std::max<std::int64_t>(0, std::min(ticks, possible));
}

void Scheduler::skip(std::int64_t ticks) {
  if (ticks == 0) {
    return;
  }
  // Blocks are given out tick by tick, and in a tick in the order of requests, as stepping does.
  const std::int64_t size = book_.block_size();
  by_room_.resize(static_cast<std::size_t>(size));
  for (std::vector<RequestIndex>& requests : by_room_) {
    requests.clear();
  }
  for (const RequestIndex index : running_) {
    const RequestState& request = state(index);
    const std::int64_t room =
        static_cast<std::int64_t>(request.blocks.size()) * size - request.computed;
    if (room < size) {
      by_room_[static_cast<std::size_t>(room)].push_back(index);
    }
  }
  for (std::int64_t tick = 0; tick < ticks; ++tick) {
    for (const RequestIndex index : by_room_[static_cast<std::size_t>(tick % size)]) {
      RequestState& request = state(index);
      const bool enough = book_.reserve(request, index, request.computed + tick + 1);
      assert(enough && "counted by steady_ticks()");
      static_cast<void>(enough);
    }
  }
  for (const RequestIndex index : running_) {
    RequestState& request = state(index);
    request.computed += ticks;
    request.known += ticks;
    book_.publish(request, std::min(request.computed, request.known));
  }
  if (limits_.lookahead) {
    for (Scheduled& entry : ticks_[(next_tick_ + ticks_.size() - 1) % ticks_.size()].entries) {
      entry.context += ticks;
    }
  }
  on_skip(ticks);
  totals_.scheduled_tokens += ticks * running_size();
  totals_.ticks += ticks;
}

}  // namespace orrery::scheduler
