// SPDX-License-Identifier: Apache-2.0
#include "serving/fleet.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace orrery::serving {
namespace {

constexpr Time kNever = Time::max();

std::int64_t tokens_of(const requests::Request& request) {
  return request.input + request.output;
}

}  // namespace

std::optional<Delivery> Fleet::Member::pop(Time now) {
  if (arrived.empty() || arrived.front().queued > now) {
    return std::nullopt;
  }
  const Delivery delivery = arrived.front();
  arrived.pop_front();
  return delivery;
}

void Fleet::Member::ended(std::size_t request, Time at) {
  fleet->ends_.push({at, fleet->order_++, index, request});
  if (fleet->coupled_) {
    driver->halt();
  }
}

void Fleet::Member::freed(Time at) {
  if (!coming.empty()) {
    ended(kFreed, at);
  }
}

Fleet::Fleet(Run& run, const FleetParts& parts, const std::vector<requests::Request>& requests,
             Inbox& client, const ServeOptions& options)
    : run_(run),
      requests_(requests),
      client_(client),
      options_(options),
      member_options_(options),
      coupled_(options.max_concurrency > 0 || parts.prefill != nullptr || run.engine.scales() ||
               std::any_of(requests.begin(), requests.end(),
                           [](const requests::Request& request) { return request.after >= 0; })),
      places_(requests.size()) {
  member_options_.progress = {};
  for (const KvTier& tier : run.kv_tiers) {
    if (tier.name == kRemoteTier) {
      store_ = std::make_shared<KvStore>(tier.capacity, tier.store);
      coupled_ = true;
    }
  }
  const Engine& engine = run_.engine;
  add_members(parts, true, engine.prefill);
  add_members(parts, false, std::max(engine.replicas, engine.most_replicas));
  if (parts.prefill != nullptr) {
    network_.emplace(*parts.machine, run.engine.network);
  }
  bucket_ = static_cast<double>(engine.admit_burst);
  for (std::size_t i = static_cast<std::size_t>(engine.prefill + engine.replicas);
       i < members_.size(); ++i) {
    members_[i]->ready = kNever;
  }
}

void Fleet::add_members(const FleetParts& parts, bool prefill, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto member = std::make_unique<Member>();
    member->fleet = this;
    member->index = members_.size();
    member->prefills = prefill;
    member->run = prefill ? *parts.prefill : *parts.one;
    member->first = members_.empty() ? 0 : members_.back()->first + members_.back()->run.devices;
    member->first_copy =
        members_.empty() ? 0 : members_.back()->first_copy + members_.back()->run.engine.dp;
    member->driver =
        std::make_unique<Driver>(member->run, prefill ? *parts.prefill_cost : *parts.cost,
                                 requests_, *member, member_options_);
    if (prefill) {
      member->driver->only_prefill();
    }
    if (store_) {
      member->driver->share(store_, parts.one->cache.per_token * parts.one->engine.block_size);
    }
    members_.push_back(std::move(member));
  }
}

Fleet::Ahead Fleet::look(Time horizon) {
  Ahead ahead;
  ahead.first = members_.front().get();
  for (std::size_t i = 1; i < members_.size(); ++i) {
    Member& member = *members_[i];
    if (member.driver->clock() < ahead.first->driver->clock()) {
      ahead.second = ahead.first->driver->clock();
      ahead.first = &member;
    } else {
      ahead.second = std::min(ahead.second, member.driver->clock());
    }
  }
  ahead.clock = ahead.first->driver->clock();
  ahead.event = client_.next();
  if (coupled_ && !ends_.empty()) {
    ahead.event = std::min(ahead.event, ends_.top().at);
  }
  if (network_) {
    const Time bound = std::min({ahead.event, next_change(), ahead.clock, horizon});
    ahead.event = std::min(ahead.event, network_->next(bound));
    if (network_->looks_ahead()) {  // one step: it may see what comes
      ahead.second = ahead.clock;
    }
  }
  ahead.over = ahead.event.is_overflow() && ahead.clock.is_overflow();
  ahead.event = std::min(ahead.event, next_change());
  return ahead;
}

Time Fleet::clock() {
  const Ahead ahead = look(kNever);
  return std::min(ahead.clock, ahead.event);
}

void Fleet::run_until(Time horizon) {
  for (;;) {
    const Ahead ahead = look(horizon);
    if (!goes_on(options_) ||
        (horizon.is_overflow() ? ahead.over : std::min(ahead.clock, ahead.event) >= horizon)) {
      return;  // nobody will ask or answer any more, or not before
    }
    if (ahead.clock < ahead.event) {
      const Time until = std::min(ahead.event, horizon);
      ahead.first->driver->run_until(coupled_ ? std::min(until, ahead.second + Time(1)) : until);
      continue;
    }
    now_ = ahead.event;
    follow_transfers(now_);
    take_ends(now_);
    take_arrivals(now_);
    scale(now_);
  }
}

Fleet::Member& Fleet::choose(bool prefill, const requests::Request& request, std::size_t& turn) {
  std::vector<Member*> pool;
  for (const auto& member : members_) {
    if (member->prefills == prefill && !member->leaves && member->ready <= now_) {
      pool.push_back(member.get());
    }
  }
  const Router router = run_.engine.router;
  if (router == Router::round_robin) {
    return *pool[turn++ % pool.size()];
  }
  const auto load = [&](const Member* member) {
    if (router == Router::least_requests) {
      return member->requests;
    }
    std::int64_t tokens = member->tokens;
    if (router == Router::prefix_aware) {
      tokens -= member->driver->cached_tokens(request);
    }
    return tokens;
  };
  Member* best = pool.front();
  std::int64_t least = load(best);
  for (Member* member : pool) {
    if (const std::int64_t its = load(member); its < least) {
      best = member;
      least = its;
    }
  }
  return *best;
}

void Fleet::take_arrivals(Time at) {
  take_ends(at);
  while (const auto delivery = client_.pop(at)) {
    const requests::Request& request = requests_[delivery->request];
    // Every pool has to be able to hold it.
    const bool fits = takes(request);
    now_ = at;
    Member& member = choose(network_.has_value(), request, arrival_turn_);
    const std::int64_t most = run_.engine.most_requests;
    if (!fits || !let_in(at) || (most > 0 && member.requests >= most)) {
      ++(fits ? run_.rejected : run_.refused);
      client_.ended(delivery->request, at);
      continue;
    }
    places_.resize(std::max(places_.size(), requests_.size()));  // more may have come
    Place& place = places_[delivery->request];
    (member.prefills ? place.prefill : place.member) = static_cast<std::int32_t>(member.index);
    (member.prefills ? place.prefilled : place.served) = member.numbered++;
    ++member.requests;
    member.tokens += tokens_of(request);
    member.arrived.push_back(*delivery);
    member.driver->poke(at);
  }
  if (options_.progress && ++reported_ % 1024 == 0) {
    options_.progress(static_cast<double>(reported_) / static_cast<double>(requests_.size()));
  }
}

void Fleet::take_ends(Time at) {
  while (!ends_.empty() && ends_.top().at <= at) {
    const End end = ends_.top();
    ends_.pop();
    Member& member = *members_[end.member];
    if (end.request == kFreed) {
      begin_transfers(member, at);
      continue;
    }
    --member.requests;
    member.tokens -= tokens_of(requests_[end.request]);
    if (member.prefills && answer_of(requests_[end.request], run_.engine) > 1) {
      const Place& place = places_[end.request];
      if (!place.aborted) {
        hand_over(end.request, end.at);
        continue;
      }
      member.driver->let_go(place.prefilled);
      member.driver->poke(at);
    }
    client_.ended(end.request, end.at);
    if (!member.prefills) {
      begin_transfers(member, at);
    }
  }
}

void Fleet::hand_over(std::size_t request, Time at) {
  Member& member = choose(false, requests_[request], decode_turn_);
  ++member.requests;
  member.tokens += tokens_of(requests_[request]);
  member.coming.push_back(request);
  begin_transfers(member, at);
}

/// The devices of the copy that has it.
Placement Fleet::place_of(const Member& member, std::size_t served) {
  const Engine& engine = member.run.engine;
  const auto copy = static_cast<std::int64_t>(member.driver->copy_of(served));
  return {.first = member.first + copy * engine.tp,
          .heads = engine.tp,
          .tokens = engine.cp,
          .layers = engine.pp};
}

/// Begins transfers as far as there are blocks, first come, first served.
void Fleet::begin_transfers(Member& member, Time at) {
  while (!member.coming.empty()) {
    const std::size_t request = member.coming.front();
    Place& place = places_[request];
    const Member& from = *members_[static_cast<std::size_t>(place.prefill)];
    const Served& computed = from.run.requests[place.prefilled];
    const auto served = member.driver->expect(request, requests_[request], computed);
    if (!served) {
      return;
    }
    member.coming.pop_front();
    ++member.numbered;
    place.member = static_cast<std::int32_t>(member.index);
    place.served = *served;
    const scheduler::RequestState& state = member.driver->state_of(*served);
    const Bytes bytes = member.run.cache.per_token * (state.spec.prompt - state.cached) +
                        member.run.cache.fixed(state.spec.prompt);
    const Placement to = place_of(member, *served);
    run_.moved_bytes += bytes * to.ranks();
    const Placement source = place_of(from, place.prefilled);
    const int crossed = network_->crossed(source, to);
    const double share =
        std::max(from.driver->collective_share(crossed), member.driver->collective_share(crossed));
    network_->begin(at + run_.engine.handover, source, to, bytes * (1 + share));
    place.moving = true;
    moving_.push_back({request, crossed});
  }
}

void Fleet::meet(const Move& move, std::int64_t more) {
  const Place& place = places_[move.request];
  for (const std::int32_t member : {place.prefill, place.member}) {
    members_[static_cast<std::size_t>(member)]->driver->meet(move.crossed, more);
  }
}

void Fleet::follow_transfers(Time at) {
  if (!network_) {
    return;
  }
  const KvTransfers::Changes& changes = network_->advance(at);
  for (const std::size_t transfer : changes.begun) {
    meet(moving_[transfer], 1);
  }
  for (const std::size_t transfer : changes.ended) {
    const Move& move = moving_[transfer];
    meet(move, -1);
    Place& place = places_[move.request];
    place.moving = false;
    Member& from = *members_[static_cast<std::size_t>(place.prefill)];
    from.driver->let_go(place.prefilled);
    from.driver->poke(at);
    Member& to = *members_[static_cast<std::size_t>(place.member)];
    Served& served = to.run.requests[place.served];
    served.moved = at - served.first;
    to.driver->deliver(place.served);
    if (place.aborted) {
      to.driver->abort(place.served, at);
    }
    to.driver->poke(at);
  }
}

/// One run of all.
void Fleet::join() {
  Time busy{0};
  Energy drawn{0};
  const Time end = std::accumulate(
      members_.begin(), members_.end(), Time(0),
      [](Time latest, const auto& member) { return std::max(latest, member->run.duration); });
  for (const auto& member : members_) {
    if (run_.engine.scales() && !member->ready.is_overflow()) {
      stop(*member, std::max(end, member->since));
    }
  }
  for (const auto& member : members_) {
    member->driver->finish();
    const Run& part = member->run;
    busy += part.busy * part.devices;
    drawn += part.drawn * part.devices;
    run_.copying += part.copying;
    run_.written_blocks += part.written_blocks;
    run_.images += part.images;
    run_.encoding += part.encoding;
    run_.gaps.insert(run_.gaps.end(), part.gaps.begin(), part.gaps.end());
    for (StepRecord step : part.steps) {
      step.engine = static_cast<std::int64_t>(member->index);
      run_.steps.push_back(step);
    }
    for (std::size_t i = 0; i < part.samples.size(); ++i) {
      if (i == run_.samples.size()) {
        run_.samples.push_back({.at = part.samples[i].at});
      }
      run_.samples[i].running += part.samples[i].running;
      run_.samples[i].waiting += part.samples[i].waiting;
      run_.samples[i].kv_use += part.samples[i].kv_use / static_cast<double>(members_.size());
    }
    run_.tokens.resize(std::max(run_.tokens.size(), part.tokens.size()));
    std::transform(part.tokens.begin(), part.tokens.end(), run_.tokens.begin(), run_.tokens.begin(),
                   std::plus<>());
    run_.totals += part.totals;
    run_.peak_kv_use = std::max(run_.peak_kv_use, part.peak_kv_use);
    run_.kv_use_s += part.kv_use_s / static_cast<double>(members_.size());
    run_.peak_running = std::max(run_.peak_running, part.peak_running);
    run_.duration = std::max(run_.duration, part.duration);
  }
  run_.busy = busy / run_.devices;
  run_.drawn = drawn / run_.devices;
  join_requests();
}

void Fleet::join_requests() {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const std::int32_t at = place.member >= 0 ? place.member : place.prefill;
    if (at < 0) {
      continue;  // refused
    }
    const std::size_t served = place.member >= 0 ? place.served : place.prefilled;
    const std::vector<Served>& joined = members_[static_cast<std::size_t>(at)]->run.requests;
    if (served >= joined.size()) {
      continue;  // on its way to the engine when the run was ended early
    }
    run_.requests.push_back(joined[served]);
    Served& request = run_.requests.back();
    const bool waits = place.member < 0 && answer_of(requests_[i], run_.engine) > 1;
    if (waits || request.last == Time(0)) {  // pauses of a network hold keys and values for ever
      request.last = Time::max();
    }
  }
}

}  // namespace orrery::serving
