// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/network.h"

#include <algorithm>
#include <utility>

namespace orrery::astra {

AwareNetwork::AwareNetwork(const Wires& wires, bool single)
    : wires_(&wires), npus_(wires.npus()), single_(single) {
  const auto count = static_cast<std::size_t>(npus_);
  const bool all_pairs = wires.dimension(0).building == Building::fully_connected;
  links_.resize(all_pairs && !single ? count * count : 2 * count);
}

void AwareNetwork::carry(Events& events, std::int64_t from, std::int64_t to, Bytes bytes,
                         Event arrival) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t id = unused_.back();
  unused_.pop_back();
  if (cost_.bytes != bytes) {  // most are as large as the one before
    cost_ = {bytes, whole_nanoseconds(bytes, wires_->dimension(0).bandwidth),
             wires_->along(0, 1, bytes)};
  }
  const std::int64_t ahead = to >= from ? to - from : to - from + npus_;
  Transfer& sent = transfers_[id];  // field by field: a temporary is read before it is written
  sent.cost = cost_;
  sent.at = from;
  sent.to = to;
  sent.clockwise = ahead <= npus_ - ahead;
  sent.behind = kNone;
  sent.arrival = arrival;
  if (from == to) {
    events.push(events.now(), {id, 0, 0, Event::Kind::hop});
  } else {
    cross(events, id);
  }
}

const Event* AwareNetwork::advance(Events& events, const Event& event) {
  if (event.kind == Event::Kind::link_free) {
    release(events, event.subject);
    return nullptr;
  }
  const Transfer& transfer = transfers_[event.subject];
  if (transfer.at != transfer.to) {
    cross(events, event.subject);
    return nullptr;
  }
  unused_.push_back(event.subject);
  return &transfer.arrival;
}

std::int64_t AwareNetwork::next_device(const Transfer& transfer) const {
  switch (wires_->dimension(0).building) {
    case Building::ring:
      if (transfer.clockwise) {
        return transfer.at + 1 < npus_ ? transfer.at + 1 : 0;
      }
      return (transfer.at > 0 ? transfer.at : npus_) - 1;
    case Building::fully_connected:
      return transfer.to;
    case Building::switched:
      return transfer.at < npus_ ? npus_ : transfer.to;
  }
  return transfer.to;
}

std::size_t AwareNetwork::link(const Transfer& transfer) const {
  switch (wires_->dimension(0).building) {
    case Building::ring:
      return static_cast<std::size_t>(transfer.at + (transfer.clockwise ? 0 : npus_));
    case Building::fully_connected:
      return static_cast<std::size_t>(transfer.at * npus_ + transfer.to);
    case Building::switched:
      if (transfer.at < npus_) {
        return static_cast<std::size_t>(transfer.at);
      }
      return static_cast<std::size_t>(npus_ + (single_ ? 0 : transfer.to));
  }
  return 0;
}

void AwareNetwork::cross(Events& events, std::uint32_t id) {
  const auto index = static_cast<std::uint32_t>(link(transfers_[id]));
  Link& link = links_[index];
  if (!link.busy) {
    start(events, index, id);
    return;
  }
  (link.first == kNone ? link.first : transfers_[link.last].behind) = id;
  link.last = id;
}

void AwareNetwork::start(Events& events, std::uint32_t link, std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  links_[link].busy = true;
  links_[link].carried += transfer.cost.bytes;
  transfer.at = next_device(transfer);
  events.push(events.now() + transfer.cost.crossing, {id, 0, 0, Event::Kind::hop});
  events.push(events.now() + transfer.cost.busy, {link, 0, 0, Event::Kind::link_free});
}

std::vector<RunResult::Link> AwareNetwork::links() const {
  const auto ends = [this](std::int64_t link) -> std::pair<std::int64_t, std::int64_t> {
    switch (wires_->dimension(0).building) {
      case Building::ring:
        return link < npus_ ? std::pair{link, (link + 1) % npus_}
                            : std::pair{link - npus_, (link - 1) % npus_};
      case Building::fully_connected:
        return {link / npus_, link % npus_};
      case Building::switched:
        return link < npus_ ? std::pair{link, npus_} : std::pair{npus_, link - npus_};
    }
    return {link, link};
  };
  std::vector<RunResult::Link> all;
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (links_[link].carried > Bytes(0)) {
      const auto [from, to] = ends(static_cast<std::int64_t>(link));
      all.push_back({from, to, links_[link].carried});
    }
  }
  return all;
}

void AwareNetwork::release(Events& events, std::uint32_t index) {
  Link& link = links_[index];
  link.busy = false;
  if (link.first != kNone) {
    const std::uint32_t id = link.first;
    link.first = std::exchange(transfers_[id].behind, kNone);
    start(events, index, id);
  }
}

}  // namespace orrery::astra
