// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fair.h"

#include <algorithm>
#include <limits>

namespace orrery::network {

TransferId FairNetwork::start(Bytes bytes, std::span<const topology::Hop> route,
                              engine::EventQueue& queue) {
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
  flow.since = queue.now();
  for (const topology::Hop& hop : route) {
    Link& link = links_[hop.link];
    link.flows.push_back(id);
    link.busy += bytes / hop.bandwidth;
    touch(hop.link);
  }
  if (route.empty()) {
    queue.push(queue.now(), kArrive, id);
  }
  return id;
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
    std::erase(links_[hop.link].flows, event.subject);
    touch(hop.link);
    latency += hop.latency;
  }
  ++flow.generation;
  queue.push(queue.now() + latency, kArrive, event.subject);
  return false;
}

void FairNetwork::touch(topology::LinkId link) {
  if (!links_[link].in_part) {
    links_[link].in_part = true;
    part_links_.push_back(link);
  }
}

/// All that the touched links share flows with, directly or through others.
void FairNetwork::collect_part() {
  for (std::size_t l = 0; l < part_links_.size(); ++l) {
    for (const TransferId id : links_[part_links_[l]].flows) {
      if (flows_[id].in_part) {
        continue;
      }
      flows_[id].in_part = true;
      part_flows_.push_back(id);
      for (const topology::Hop& hop : flows_[id].route) {
        touch(hop.link);
      }
    }
  }
}

void FairNetwork::settle(engine::EventQueue& queue) {
  if (part_links_.empty()) {
    return;
  }
  collect_part();
  std::sort(part_flows_.begin(), part_flows_.end());
  for (const TransferId id : part_flows_) {
    Flow& flow = flows_[id];
    flow.left = std::max(0.0, flow.left - flow.rate * to_seconds(queue.now() - flow.since));
    flow.since = queue.now();
  }
  fill();
  for (const TransferId id : part_flows_) {
    Flow& flow = flows_[id];
    flow.in_part = false;
    queue.push(queue.now() + from_seconds(flow.left / flow.rate), kDrained, id, ++flow.generation);
  }
  for (const topology::LinkId link : part_links_) {
    links_[link].in_part = false;
  }
  part_links_.clear();
  part_flows_.clear();
}

/// Progressive filling: the link with the least share per open flow is full first.
void FairNetwork::fill() {
  for (const TransferId id : part_flows_) {
    flows_[id].fixed = false;
    for (const topology::Hop& hop : flows_[id].route) {
      Link& link = links_[hop.link];
      link.spare = link.bandwidth = hop.bandwidth.value();
      link.wanted = 0;
      link.open = static_cast<std::uint32_t>(link.flows.size());
    }
  }
  for (const TransferId id : part_flows_) {
    for (const topology::Hop& hop : flows_[id].route) {
      links_[hop.link].wanted += weight(hop);
    }
  }
  while (fill_fullest()) {
  }
}

/// Links that are full at the least share, all of them at once: in symmetric traffic they are many.
bool FairNetwork::fill_fullest() {
  constexpr double kAlike = 1 + 1e-12;
  double least = std::numeric_limits<double>::infinity();
  for (const topology::LinkId link : part_links_) {
    least = std::min(least, share(links_[link]));
  }
  if (least == std::numeric_limits<double>::infinity()) {
    return false;
  }
  for (const topology::LinkId link : part_links_) {
    if (share(links_[link]) > least * kAlike) {
      continue;
    }
    for (const TransferId id : links_[link].flows) {
      if (!flows_[id].fixed) {
        fix(id, least);
      }
    }
  }
  return true;
}

void FairNetwork::fix(TransferId id, double rate) {
  flows_[id].fixed = true;
  flows_[id].rate = rate;
  for (const topology::Hop& hop : flows_[id].route) {
    Link& link = links_[hop.link];
    link.spare = std::max(0.0, link.spare - rate * weight(hop));
    link.wanted -= weight(hop);
    --link.open;
  }
}

}  // namespace orrery::network
