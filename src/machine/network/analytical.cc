// SPDX-License-Identifier: Apache-2.0
#include "machine/network/analytical.h"

#include <algorithm>

namespace orrery {

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
                                    std::span<const LinkUse> links, EventQueue& queue) {
  const TransferId id = allocate();
  Transfer& transfer = transfers_[id];
  transfer.remaining = static_cast<double>(serialisation.value());
  transfer.since = now;
  transfer.latency = latency;
  transfer.links = links;
  transfer.occupies = true;
  for (const LinkUse& use : links) {
    drop_serialised(use.link, now);
    on_link_[use.link].push_back(id);
  }
  const bool shared = shares_a_link(transfer);
  transfer.slowdown = shared ? slowdown_of(transfer) : 1;
  // Unshared transfers take the exact integer time, whatever doubles can hold.
  transfer.serialised =
      now + (shared ? Time::from_double(transfer.remaining * transfer.slowdown) : serialisation);
  schedule(id, shared, queue);
  if (shared) {
    update_neighbours(id, now, queue);
  }
  return id;
}

bool AnalyticalNetwork::handle(const EventQueue::Event& event, EventQueue& queue) {
  Transfer& transfer = transfers_[event.subject];
  if (event.generation != transfer.generation) {
    return false;
  }
  if (transfer.occupies) {
    leave_links(event.subject);
    update_neighbours(event.subject, event.when, queue);
  }
  if (event.kind == kRelease) {
    return false;
  }
  ++transfer.generation;
  free_.push_back(event.subject);
  return true;
}

double AnalyticalNetwork::slowdown_of(const Transfer& transfer) const {
  double slowdown = 1;
  for (const LinkUse& use : transfer.links) {
    slowdown = std::max(slowdown, use.weight * static_cast<double>(on_link_[use.link].size()));
  }
  return slowdown;
}

bool AnalyticalNetwork::shares_a_link(const Transfer& transfer) const {
  return std::any_of(transfer.links.begin(), transfer.links.end(),
                     [&](const LinkUse& use) { return on_link_[use.link].size() > 1; });
}

/// A transfer that shares frees its links with an event, so that its neighbours speed up; one that
/// shares with nobody is dropped from them when it finishes or when somebody looks.
void AnalyticalNetwork::schedule(TransferId id, bool shared, EventQueue& queue) {
  Transfer& transfer = transfers_[id];
  transfer.announced = shared;
  if (shared) {
    queue.push(transfer.serialised, kRelease, id, transfer.generation);
  }
  queue.push(transfer.serialised + transfer.latency, kFinish, id, transfer.generation);
}

void AnalyticalNetwork::update_rate(TransferId id, Time now, EventQueue& queue) {
  Transfer& transfer = transfers_[id];
  const double slowdown = slowdown_of(transfer);
  if (transfer.announced && slowdown == transfer.slowdown) {
    return;
  }
  const double elapsed = static_cast<double>((now - transfer.since).value());
  transfer.remaining = std::max(0.0, transfer.remaining - elapsed / transfer.slowdown);
  transfer.since = now;
  transfer.slowdown = slowdown;
  transfer.serialised = now + Time::from_double(transfer.remaining * slowdown);
  ++transfer.generation;
  schedule(id, true, queue);
}

void AnalyticalNetwork::update_neighbours(TransferId id, Time now, EventQueue& queue) {
  for (const LinkUse& use : transfers_[id].links) {
    for (const TransferId other : on_link_[use.link]) {
      if (other != id) {
        update_rate(other, now, queue);
      }
    }
  }
}

void AnalyticalNetwork::leave_links(TransferId id) {
  for (const LinkUse& use : transfers_[id].links) {
    std::erase(on_link_[use.link], id);
  }
  transfers_[id].occupies = false;
}

void AnalyticalNetwork::drop_serialised(LinkId link, Time now) {
  for (std::size_t i = 0; i < on_link_[link].size();) {
    if (transfers_[on_link_[link][i]].serialised <= now) {
      leave_links(on_link_[link][i]);
    } else {
      ++i;
    }
  }
}

}  // namespace orrery
