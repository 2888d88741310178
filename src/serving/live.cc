// SPDX-License-Identifier: Apache-2.0
#include "serving/live.h"

#include <algorithm>

#include "serving/fleet.h"

namespace orrery::serving {

Live::Live(Server& server, LiveListener& listener) : run_(server.part_.empty), listener_(listener) {
  options_.skip = false;  // who waits for tokens is told of each
  options_.tell_blocks = true;
  run_.devices = server.devices_;
  const Engine& engine = run_.engine;
  blocks_ = run_.kv_blocks * engine.dp * std::max(engine.replicas, engine.most_replicas);
  if (server.prefill_) {
    const Run& prompts = server.prefill_->empty;
    blocks_ += prompts.kv_blocks * prompts.engine.dp * engine.prefill;
  }
  Inbox& inbox = *this;
  fleet_ = std::make_unique<Fleet>(run_, server.parts(), requests_, inbox, options_);
  fleet_->couple();
}

Live::~Live() = default;

std::size_t Live::send(requests::Request request) {
  const std::size_t number = requests_.size();
  on_the_way_.emplace(request.arrival + run_.engine.front_end, number);
  requests_.push_back(std::move(request));
  known_.emplace_back();
  ++open_;
  return number;
}

void Live::abort(std::size_t request, Time at) {
  Known& known = known_[request];
  if (known.over || known.aborted) {
    return;
  }
  known.aborted = true;
  if (known.popped) {
    fleet_->abort(request, at);
  } else {
    ended(request, at);  // pop() leaves it out
  }
}

Time Live::next_event() {
  return fleet_->clock();
}

void Live::run_until(Time horizon) {
  fleet_->run_until(horizon);
}

Live::Load Live::load() const {
  const Measures::State state = fleet_->load();
  return {.running = state.running,
          .waiting = std::max<std::int64_t>(0, static_cast<std::int64_t>(open_) - state.running),
          .kv_use = static_cast<double>(state.blocks) / static_cast<double>(blocks_)};
}

bool Live::takes(const requests::Request& request) const {
  return fleet_->takes(request);
}

Run Live::finish(Time at) {
  for (std::size_t i = 0; i < known_.size(); ++i) {
    abort(i, at);
  }
  for (Time next = next_event(); open_ > 0 && !next.is_overflow(); next = next_event()) {
    run_until(next + Time(1));
  }
  fleet_->join();
  std::size_t served = 0;
  std::vector<Served> answered;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (fleet_->has(i)) {
      const Served& its = run_.requests[served++];
      if (!known_[i].aborted) {
        answered.push_back(its);
      }
    }
  }
  run_.requests = std::move(answered);
  return std::move(run_);
}

Time Live::next() const {
  return on_the_way_.empty() ? Time::max() : on_the_way_.top().first;
}

std::optional<Delivery> Live::pop(Time now) {
  while (!on_the_way_.empty() && on_the_way_.top().first <= now) {
    const auto [queued, request] = on_the_way_.top();
    on_the_way_.pop();
    if (!known_[request].over) {
      known_[request].popped = true;
      return Delivery{.request = request, .sent = requests_[request].arrival, .queued = queued};
    }
  }
  return std::nullopt;
}

void Live::emitted(std::size_t request, Time at, std::int64_t tokens) {
  if (!known_[request].aborted) {
    listener_.emitted(request, at, tokens);
  }
}

void Live::ended(std::size_t request, Time at) {
  Known& known = known_[request];
  const bool rejected = run_.rejected > std::exchange(rejected_, run_.rejected);
  if (known.over) {
    return;
  }
  known.over = true;
  --open_;
  const Ending how = known.aborted           ? Ending::aborted
                     : rejected              ? Ending::rejected
                     : !fleet_->has(request) ? Ending::refused
                                             : Ending::answered;
  requests_[request].ids = {};
  listener_.ended(request, at, how, how == Ending::answered ? fleet_->served(request) : Served{});
}

}  // namespace orrery::serving
