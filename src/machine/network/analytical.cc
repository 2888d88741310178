// SPDX-License-Identifier: Apache-2.0
#include "machine/network/analytical.h"

#include <algorithm>
#include <bit>

namespace orrery::network {

TransferId AnalyticalNetwork::allocate() {
  if (free_.empty()) {
    transfers_.emplace_back();
    return static_cast<TransferId>(transfers_.size() - 1);
  }
  const TransferId id = free_.back();
  free_.pop_back();
  return id;
}

TransferId AnalyticalNetwork::start(Time now, Time serialisation, Time latency,
                                    std::span<const topology::LinkUse> links) {
  for (const topology::LinkUse& use : links) {
    drop_serialised(use.link, now);
  }
  const TransferId id = allocate();
  Transfer& transfer = transfers_[id];
  transfer.serialisation = serialisation;
  transfer.remaining = static_cast<double>(serialisation.value());
  transfer.slowdown = 0;
  transfer.since = now;
  transfer.serialised = Time::max();
  transfer.latency = latency;
  transfer.links = links;
  transfer.occupies = true;
  transfer.announced = false;
  for (const topology::LinkUse& use : links) {
    on_link_[use.link].push_back(id);
    load_[use.link] += topology::counted(use.weight);
  }
  touch(id);
  touch_neighbours(id);
  return id;
}

bool AnalyticalNetwork::handle(const engine::EventQueue::Event& event) {
  Transfer& transfer = transfers_[event.subject];
  if (event.generation != transfer.generation) {
    return false;
  }
  if (transfer.occupies) {
    leave_links(event.subject);
  }
  if (event.kind == kRelease) {
    return false;
  }
  ++transfer.generation;
  free_.push_back(event.subject);
  return true;
}

void AnalyticalNetwork::settle(engine::EventQueue& queue) {
  for (const TransferId id : touched_) {
    transfers_[id].touched = false;
    if (transfers_[id].occupies) {
      update_rate(id, queue);
    }
  }
  touched_.clear();
}

/// A transfer that shares frees its links with an event, so that its neighbours speed up; one that
/// shares with nobody is dropped from them when it finishes or when somebody looks.
void AnalyticalNetwork::update_rate(TransferId id, engine::EventQueue& queue) {
  Transfer& transfer = transfers_[id];
  const Time now = queue.now();
  const bool fresh = transfer.slowdown == 0;
  const bool shared = shares_a_link(transfer);
  const double slowdown = shared ? slowdown_of(transfer) : 1;
  const bool same = slowdown == transfer.slowdown && (transfer.announced || !shared);
  if (same || transfer.serialised <= now) {
    return;
  }
  if (!fresh) {
    const auto elapsed = static_cast<double>((now - transfer.since).value());
    transfer.remaining = std::max(0.0, transfer.remaining - elapsed / transfer.slowdown);
  }
  transfer.since = now;
  transfer.slowdown = slowdown;
  // An undisturbed transfer takes the exact integer time, whatever doubles can hold.
  transfer.serialised =
      now + (fresh && slowdown == 1 ? transfer.serialisation
                                    : Time::from_double(transfer.remaining * slowdown));
  ++transfer.generation;
  transfer.announced = shared;
  if (shared) {
    queue.push(transfer.serialised, kRelease, id, transfer.generation);
  }
  queue.push(transfer.serialised + transfer.latency, kFinish, id, transfer.generation);
}

double AnalyticalNetwork::slowdown_of(const Transfer& transfer) const {
  double slowdown = 1;
  for (const topology::LinkUse& use : transfer.links) {
    slowdown = std::max(slowdown, load_[use.link]);
  }
  return slowdown;
}

bool AnalyticalNetwork::shares_a_link(const Transfer& transfer) const {
  return std::any_of(transfer.links.begin(), transfer.links.end(),
                     [&](const topology::LinkUse& use) {
                       return on_link_[use.link].size() > 1 || load_[use.link] > 1;
                     });
}

void AnalyticalNetwork::touch(TransferId id) {
  if (!transfers_[id].touched) {
    transfers_[id].touched = true;
    touched_.push_back(id);
  }
}

void AnalyticalNetwork::touch_neighbours(TransferId id) {
  for (const topology::LinkUse& use : transfers_[id].links) {
    if (on_link_[use.link].size() > 1) {
      for (const TransferId other : on_link_[use.link]) {
        touch(other);
      }
    }
  }
}

void AnalyticalNetwork::leave_links(TransferId id) {
  touch_neighbours(id);
  for (const topology::LinkUse& use : transfers_[id].links) {
    std::erase(on_link_[use.link], id);
    load_[use.link] -= topology::counted(use.weight);
  }
  transfers_[id].occupies = false;
}

void AnalyticalNetwork::drop_serialised(topology::LinkId link, Time now) {
  for (std::size_t i = 0; i < on_link_[link].size();) {
    if (transfers_[on_link_[link][i]].serialised <= now) {
      leave_links(on_link_[link][i]);
    } else {
      ++i;
    }
  }
}

void AnalyticalNetwork::describe(Time now, std::span<const TransferId> live,
                                 std::vector<std::int64_t>& state) const {
  std::vector<std::int64_t> place(transfers_.size(), -1);
  for (std::size_t i = 0; i < live.size(); ++i) {
    place[live[i]] = static_cast<std::int64_t>(i);
  }
  for (const TransferId id : live) {
    const Transfer& transfer = transfers_[id];
    const bool over = transfer.serialised <= now;
    state.insert(state.end(),
                 {transfer.serialisation.value(), std::bit_cast<std::int64_t>(transfer.remaining),
                  std::bit_cast<std::int64_t>(transfer.slowdown), (transfer.since - now).value(),
                  over ? -1 : (transfer.serialised - now).value(), transfer.latency.value(),
                  transfer.occupies ? 1 : 0, transfer.announced ? 1 : 0});
    for (const topology::LinkUse& use : transfer.links) {  // who shares each of its links
      state.push_back(static_cast<std::int64_t>(use.link));
      for (const TransferId other : on_link_[use.link]) {
        state.push_back(place[other]);
      }
    }
  }
}

void AnalyticalNetwork::shift(Time by) {
  for (Transfer& transfer : transfers_) {
    transfer.since += by;
    if (transfer.serialised < Time::max()) {
      transfer.serialised += by;
    }
  }
}

}  // namespace orrery::network
