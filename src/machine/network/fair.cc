// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fair.h"

#include <algorithm>
#include <bit>

namespace orrery::network {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// Levels this near are one: in symmetric traffic many links are full at once.
constexpr double kAlike = 1 + 1e-12;
/// A level that is below the one which a change reaches down to, but by less than this, counts as
/// reached.
constexpr double kReached = 1 - 1e-9;
/// A link whose flows have been looked at so often for nothing is worth their order.
constexpr std::uint8_t kIdle = 4;
/// Makes what was rounded to a float no less than it was.
constexpr double kRoundedUp = 1 + 1e-6;

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.level > b.level || (a.level == b.level && (a.flow != b.flow ? a.flow : a.of > b.of));
};

}  // namespace

void FairNetwork::take_places(Flow& flow) {
  const std::size_t length = flow.route.size();
  if (length >= free_places_.size()) {
    free_places_.resize(length + 1);
  }
  if (free_places_[length].empty()) {
    flow.places = static_cast<std::uint32_t>(places_.size());
    places_.resize(places_.size() + length);
  } else {
    flow.places = free_places_[length].back();
    free_places_[length].pop_back();
  }
}

TransferId FairNetwork::start(Bytes bytes, std::span<const topology::Hop> route,
                              engine::EventQueue& queue, const FlowTerms& terms) {
  if (free_.empty()) {
    free_.push_back(static_cast<TransferId>(flows_.size()));
    flows_.emplace_back();
  }
  const TransferId id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  flow.route = route;
  flow.left = static_cast<double>(bytes.value());
  flow.rate = 0;
  flow.level = kUnlimited;
  flow.terms = terms;
  flow.since = queue.now();
  flow.arrival = queue.now();
  if (route.empty()) {
    queue.push(flow.arrival, kArrive, id);
    return id;
  }
  enter_links(id, bytes);
  return id;
}

void FairNetwork::enter_links(TransferId id, Bytes bytes) {
  Flow& flow = flows_[id];
  fresh_.push_back(id);
  take_places(flow);
  for (std::uint32_t h = 0; h < flow.route.size(); ++h) {
    const topology::Hop& hop = flow.route[h];
    Link& link = links_[hop.link];
    if (link.flows.empty()) {
      link.bandwidth = hop.bandwidth.value();
      link.total = 0;
    }
    places_[flow.places + h] = static_cast<std::uint32_t>(link.flows.size());
    link.flows.push_back({id, h});
    link.ranked = false;
    link.total += weight(link, flow, hop);
    link.busy += bytes / hop.bandwidth;
    touch(hop.link);
  }
}

void FairNetwork::leave_links(TransferId id) {
  Flow& flow = flows_[id];
  for (std::uint32_t h = 0; h < flow.route.size(); ++h) {
    const topology::Hop& hop = flow.route[h];
    Link& link = links_[hop.link];
    link.total -= weight(link, flow, hop);
    const std::uint32_t place = places_[flow.places + h];
    const Passing last = link.flows.back();
    link.flows[place] = last;
    places_[flows_[last.flow].places + last.hop] = place;
    link.flows.pop_back();
    if (link.ranked) {
      link.gone.push_back(static_cast<float>(flow.level));
      std::push_heap(link.gone.begin(), link.gone.end());
    }
    touch(hop.link);
  }
  free_places_[flow.route.size()].push_back(flow.places);
}

bool FairNetwork::handle(const engine::EventQueue::Event& event, engine::EventQueue& queue) {
  if (event.kind == kArrive) {
    free_.push_back(event.subject);
    return true;
  }
  Flow& flow = flows_[event.subject];
  if (event.generation != flow.generation) {
    return false;  // its rate has changed since
  }
  Time latency{0};
  for (const topology::Hop& hop : flow.route) {
    latency += hop.latency;
  }
  leave_links(event.subject);
  threshold_ = std::min(threshold_, flow.level);
  ++flow.generation;
  flow.rate = 0;
  flow.left = 0;
  flow.arrival = queue.now() + latency;
  queue.push(flow.arrival, kArrive, event.subject);
  return false;
}

std::optional<Bytes> FairNetwork::reroute(TransferId id, std::span<const topology::Hop> route,
                                          engine::EventQueue& queue) {
  Flow& flow = flows_[id];
  if (flow.route.empty()) {
    return std::nullopt;
  }
  const Link& first = links_[flow.route.front().link];
  const std::uint32_t place = places_[flow.places];
  if (place >= first.flows.size() || first.flows[place].flow != id) {
    return std::nullopt;
  }
  flow.left = std::max(0.0, flow.left - flow.rate * to_seconds(queue.now() - flow.since));
  flow.since = queue.now();
  leave_links(id);
  threshold_ = std::min(threshold_, flow.level);
  ++flow.generation;
  flow.route = route;
  flow.rate = 0;
  flow.level = kUnlimited;
  const Bytes left = Bytes::from_double(flow.left);
  enter_links(id, left);
  return left;
}

void FairNetwork::describe(Time now, std::span<const TransferId> live,
                           std::vector<std::int64_t>& state) const {
  for (const TransferId id : live) {
    const Flow& flow = flows_[id];
    const bool moves = flow.rate > 0;
    state.push_back(std::bit_cast<std::int64_t>(flow.left));
    state.push_back(std::bit_cast<std::int64_t>(flow.rate));
    state.push_back(((moves ? flow.since : flow.arrival) - now).value());
  }
}

void FairNetwork::shift(Time by) {
  for (Flow& flow : flows_) {
    flow.since += by;
    flow.arrival += by;
  }
}

void FairNetwork::limit(TransferId id, Bandwidth cap) {
  Flow& flow = flows_[id];
  flow.terms.cap = cap;
  threshold_ = std::min(threshold_, std::min(flow.level, cap.value() / flow.terms.weight));
  for (const topology::Hop& hop : flow.route) {
    touch(hop.link);
  }
}

void FairNetwork::scale(topology::LinkId id, double factor) {
  Link& link = links_[id];
  if (link.factor == factor) {
    return;
  }
  const double least = std::min(link.factor, factor);
  link.factor = factor;
  if (!link.flows.empty()) {
    threshold_ = std::min(threshold_, link.bandwidth * least / link.total);
    touch(id);
  }
}

void FairNetwork::touch(topology::LinkId link) {
  if (!links_[link].in_part) {
    links_[link].in_part = true;
    part_links_.push_back(link);
  }
}

/// No flow of the link gets a lower level than this.
double FairNetwork::least_equal_share(const Flow& flow) const {
  double least = flow.terms.cap.value() / flow.terms.weight;
  for (const topology::Hop& hop : flow.route) {
    const Link& link = links_[hop.link];
    least = std::min(least, link.bandwidth * link.factor / link.total);
  }
  return least;
}

/// All that the touched links share flows with, directly or through others, from the threshold on.
void FairNetwork::collect_part() {
  for (const TransferId id : fresh_) {
    threshold_ = std::min(threshold_, least_equal_share(flows_[id]));
  }
  fresh_.clear();
  threshold_ *= kReached;
  for (std::size_t l = 0; l < part_links_.size(); ++l) {
    collect_link(part_links_[l]);
  }
  std::sort(part_flows_.begin(), part_flows_.end());
}

double FairNetwork::highest_level(Link& link) {
  while (!link.gone.empty() && link.gone.front() == link.levels.back()) {
    std::pop_heap(link.gone.begin(), link.gone.end());
    link.gone.pop_back();
    link.levels.pop_back();
  }
  return link.levels.empty() ? 0 : kRoundedUp * link.levels.back();
}

void FairNetwork::rank(Link& link) const {
  link.gone.clear();
  link.levels.clear();
  for (const Passing& passing : link.flows) {
    link.levels.push_back(static_cast<float>(flows_[passing.flow].level));
  }
  std::sort(link.levels.begin(), link.levels.end());
  link.ranked = true;
}

void FairNetwork::collect_link(topology::LinkId id) {
  Link& link = links_[id];
  link.open = 0;
  if (link.ranked && highest_level(link) < threshold_) {
    return;
  }
  link.spare = link.bandwidth * link.factor;
  link.wanted = 0;
  for (std::size_t i = 0; i < link.flows.size(); ++i) {
    const auto [other, h] = link.flows[i];
    Flow& flow = flows_[other];
    const double per_level = weight(link, flow, flow.route[h]);
    if (flow.level < threshold_) {
      link.spare -= flow.level * per_level;
      continue;
    }
    link.wanted += per_level;
    ++link.open;
    if (!flow.in_part) {
      flow.in_part = true;
      flow.fixed = false;
      part_flows_.push_back(other);
      for (const topology::Hop& hop : flow.route) {
        touch(hop.link);
      }
    }
  }
  link.idle = link.open > 0 ? 0 : static_cast<std::uint8_t>(link.idle + 1);
  if (link.idle == kIdle) {
    link.idle = 0;
    rank(link);
  }
}

void FairNetwork::settle(engine::EventQueue& queue) {
  if (part_links_.empty()) {
    return;
  }
  collect_part();
  solved_ += part_flows_.size();
  fill();
  for (const TransferId id : part_flows_) {
    update(id, queue);
  }
  for (const topology::LinkId link : part_links_) {
    links_[link].in_part = false;
  }
  part_links_.clear();
  part_flows_.clear();
  threshold_ = kUnlimited;
}

/// Goes on at the new rate.
void FairNetwork::update(TransferId id, engine::EventQueue& queue) {
  Flow& flow = flows_[id];
  flow.in_part = false;
  const double rate = flow.level * flow.terms.weight;
  if (flow.rate > 0 && rate <= flow.rate * kAlike && rate * kAlike >= flow.rate) {
    return;
  }
  flow.left = std::max(0.0, flow.left - flow.rate * to_seconds(queue.now() - flow.since));
  flow.since = queue.now();
  flow.rate = rate;
  ++flow.generation;
  if (rate > 0) {
    queue.push(queue.now() + from_seconds(flow.left / rate), kDrained, id, flow.generation);
  }
}

/// Progressive filling: the link with the least spare per open flow is full first. Shares of links
/// only grow while others fill, so a mark that is out of date comes too early and is put back.
void FairNetwork::fill() {
  const auto share = [](const Link& link) { return std::max(0.0, link.spare) / link.wanted; };
  marks_.clear();
  for (const topology::LinkId id : part_links_) {
    if (links_[id].open > 0) {
      marks_.push_back({share(links_[id]), id, false});
    }
  }
  for (const TransferId id : part_flows_) {
    if (const FlowTerms& terms = flows_[id].terms; terms.cap.value() < kUnlimited) {
      marks_.push_back({terms.cap.value() / terms.weight, id, true});
    }
  }
  std::make_heap(marks_.begin(), marks_.end(), kLater);
  double level = 0;
  while (!marks_.empty()) {
    std::pop_heap(marks_.begin(), marks_.end(), kLater);
    const Mark mark = marks_.back();
    marks_.pop_back();
    if (mark.level > level * kAlike) {
      level = mark.level;
    }
    if (mark.flow) {
      if (!flows_[mark.of].fixed) {
        fix(mark.of, level);
      }
      continue;
    }
    const Link& link = links_[mark.of];
    if (link.open == 0) {
      continue;
    }
    if (const double now = share(link); now > level * kAlike) {
      marks_.push_back({now, mark.of, false});
      std::push_heap(marks_.begin(), marks_.end(), kLater);
      continue;
    }
    for (const Passing& passing : link.flows) {
      if (flows_[passing.flow].in_part && !flows_[passing.flow].fixed) {
        fix(passing.flow, level);
      }
    }
  }
}

void FairNetwork::fix(TransferId id, double level) {
  Flow& flow = flows_[id];
  flow.fixed = true;
  flow.level = level;
  for (const topology::Hop& hop : flow.route) {
    Link& link = links_[hop.link];
    const double per_level = weight(link, flow, hop);
    link.spare -= level * per_level;
    link.wanted -= per_level;
    --link.open;
    link.ranked = false;
  }
}

}  // namespace orrery::network
