// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/traffic_class.h"

#include <algorithm>

namespace orrery::flit {

ClassDraws::ClassDraws(const Network& network, double rate)
    : network_(&network),
      next_(network.graph.nodes.size() * network.classes.size()),
      in_burst_(next_.size()),
      created_(network.graph.nodes.size()),
      replies_(network.graph.nodes.size()) {
  for (const TrafficClass& of : network.classes) {
    probability_.push_back(of.probability(rate));
  }
}

bool ClassDraws::draws(std::uint32_t source, std::uint32_t of, Random& random) {
  const TrafficClass& traffic = network_->classes[of];
  if (traffic.has_bursts()) {
    in_burst_[source] = in_burst_[source] ? random.unit() >= traffic.burst_beta
                                          : random.unit() < traffic.burst_alpha;
    return in_burst_[source] && random.unit() < probability_[of];
  }
  return random.unit() < probability_[of];
}

Purpose ClassDraws::issue(std::uint32_t source, std::uint32_t of, Random& random) {
  const TrafficClass& traffic = network_->classes[of];
  const auto node = source / static_cast<std::uint32_t>(network_->classes.size());
  drawn_ = true;
  if (traffic.transacts && !replies_[node].empty()) {
    return replies_[node].front().purpose;
  }
  drawn_ = draws(source, of, random);
  if (!drawn_ || !traffic.transacts) {
    return Purpose::any;
  }
  return random.unit() < traffic.write_share ? Purpose::write_request : Purpose::read_request;
}

std::int64_t ClassDraws::priority_of(std::uint32_t node, std::uint32_t of, Cycle created) const {
  switch (network_->router.priority) {
    case Priority::traffic_class:
      return network_->classes[of].priority;
    case Priority::age:
      return kHighestPriority - created;
    case Priority::sequence:
      return kHighestPriority - created_[node];
    default:
      return 0;
  }
}

Created ClassDraws::make(std::uint32_t source, std::uint32_t of, Purpose purpose, Random& random) {
  const TrafficClass& traffic = network_->classes[of];
  const auto node = source / static_cast<std::uint32_t>(network_->classes.size());
  Created packet;
  packet.kind = static_cast<std::uint32_t>(purpose);
  packet.when = next_[source];
  std::size_t size = 0;
  if (!traffic.transacts && traffic.sizes.size() > 1) {
    const auto all = std::accumulate(traffic.weights.begin(), traffic.weights.end(), 0);
    auto drawn = static_cast<int>(random.below(static_cast<std::uint32_t>(all)));
    while (size + 1 < traffic.sizes.size() && drawn >= traffic.weights[size]) {
      drawn -= traffic.weights[size++];
    }
  }
  packet.flits = static_cast<std::uint32_t>(
      traffic.transacts ? traffic.transaction_sizes[packet.kind] : traffic.sizes[size]);
  packet.target = network_->traffic[of]->target(node, random);
  if (purpose >= Purpose::read_reply) {
    const Reply reply = replies_[node].front();
    replies_[node].erase(replies_[node].begin());
    packet.target = reply.target;
    packet.when = reply.when;
    packet.counts = reply.counts;
  } else if (purpose == Purpose::any) {
    random.below(1);  // which of the one network
  }
  ++created_[node];
  packet.priority = priority_of(node, of, packet.when);
  return packet;
}

void ClassDraws::answer(const Arrived& request, Cycle now, bool counts) {
  const auto purpose = static_cast<Purpose>(request.kind);
  replies_[request.target].push_back(
      {request.source,
       purpose == Purpose::read_request ? Purpose::read_reply : Purpose::write_reply, now, counts});
}

bool ClassDraws::has_drawn(Cycle cycle) const {
  return std::all_of(next_.begin(), next_.end(), [&](Cycle next) { return next > cycle; });
}

}  // namespace orrery::flit
