// SPDX-License-Identifier: Apache-2.0
#include "collective/on_links.h"

#include <algorithm>
#include <cmath>

#include "collective/phase_messages.h"
#include "engine/event_queue.h"
#include "machine/network/fair.h"

namespace orrery::collective {
namespace {

/// A share of a buffer that is a whole number of bytes may come out a little larger.
constexpr double kRounding = 1 - 1e-12;

/// A phase alone on its links.
class PhaseRun {
 public:
  explicit PhaseRun(const PhaseFlows& phase) : phase_(phase), network_(links_of(phase)) {}

  Time run() {
    const std::vector<std::uint32_t>& waits = phase_.list.waits();
    for (std::uint32_t group = 0; group < phase_.groups; ++group) {
      waits_.insert(waits_.end(), waits.begin(), waits.end());
      for (std::uint32_t message = 0; message < waits.size(); ++message) {
        if (waits[message] == 0) {
          send({group, message});
        }
      }
    }
    Time end{0};
    network_.settle(queue_);
    while (!queue_.empty()) {
      const engine::EventQueue::Event event = queue_.pop();
      if (network_.handle(event, queue_)) {
        end = queue_.now();
        arrive(sent_[event.subject]);
      }
      if (queue_.instant_is_over()) {
        network_.settle(queue_);
      }
    }
    return end;
  }

 private:
  struct Sent {
    std::uint32_t group = 0;
    std::uint32_t message = 0;
  };

  static std::size_t links_of(const PhaseFlows& phase) {
    std::size_t links = 0;
    for (std::uint32_t group = 0; group < phase.groups; ++group) {
      for (std::uint32_t message = 0; message < phase.list.size(); ++message) {
        for (const topology::Hop& hop : phase.way(group, message)) {
          links = std::max<std::size_t>(links, hop.link + 1);
        }
      }
    }
    return links;
  }

  void send(const Sent& what) {
    const network::TransferId id = network_.start(bytes_of(phase_.list, what.message, phase_.size),
                                                  phase_.way(what.group, what.message), queue_);
    sent_.resize(std::max<std::size_t>(sent_.size(), id + 1));
    sent_[id] = what;
  }
  void arrive(const Sent& what) {
    for (const std::uint32_t next : phase_.list.unlocks(what.message)) {
      if (--waits_[what.group * phase_.list.size() + next] == 0) {
        send({what.group, next});
      }
    }
  }

  const PhaseFlows& phase_;
  network::FairNetwork network_;
  engine::EventQueue queue_;
  std::vector<std::uint32_t> waits_;  ///< by group and message: arrivals that it waits for
  std::vector<Sent> sent_;            ///< by TransferId
};

}  // namespace

Bytes bytes_of(const MessageList& list, std::uint32_t message, Bytes size) {
  const double part = list.share(message) * static_cast<double>(size.value());
  return Bytes(static_cast<std::int64_t>(std::ceil(part * kRounding)));
}

Time flow_time(const PhaseFlows& phase) {
  return PhaseRun(phase).run();
}

Result<void> LinkTimes::check(graph::CollectiveKind kind, const std::vector<Extent>& extents,
                              CollectiveAlgorithm algorithm) const {
  constexpr Bytes kAny{1 << 20};
  return extents.empty()
             ? Result<void>{}
             : check_messages(plan_messages(kind, kAny, extents, algorithm, machine_), machine_);
}

Time LinkTimes::time(const std::vector<CollectivePhase>& phases) {
  Time sum{0};
  for (const CollectivePhase& phase : phases) {
    Ways& ways = ways_of(phase);
    const auto [known, fresh] = ways.known.try_emplace(phase.size);
    if (fresh) {
      known->second = flow_time(
          {ways.list, phase.size, ways.groups, [&](std::uint32_t group, std::uint32_t message) {
             return std::span<const topology::Hop>(
                 ways.of_pair[group * ways.list.pairs().size() + ways.list.pair(message)]);
           }});
    }
    sum += setup_of(phase, machine_) + known->second;
  }
  return sum;
}

Time LinkTimes::time(graph::CollectiveKind kind, Bytes size, const std::vector<Extent>& extents,
                     CollectiveAlgorithm algorithm) {
  return time(plan_messages(kind, size, extents, algorithm, machine_));
}

LinkTimes::Ways& LinkTimes::ways_of(const CollectivePhase& phase) {
  Shape shape{{phase.kind, phase.algorithm}, {}};
  for (const PortUse& port : phase.ports) {
    shape.second.insert(shape.second.end(), {port.extent.dimension, port.extent.count,
                                             port.extent.stride, port.protocol});
  }
  const auto known = ways_.find(shape);
  if (known != ways_.end()) {
    return known->second;
  }
  const std::vector<std::vector<std::int64_t>> groups = groups_of(phase);
  Ways ways{.list = list_of(phase, machine_),
            .groups = static_cast<std::uint32_t>(groups.size()),
            .of_pair = {},
            .known = {}};
  const PhaseWays on_links(phase, machine_);
  for (const std::vector<std::int64_t>& group : groups) {
    for (const MessageList::Pair& pair : ways.list.pairs()) {
      on_links.append(group[pair.sender], group[pair.receiver], ways.of_pair.emplace_back());
    }
  }
  return ways_.emplace(std::move(shape), std::move(ways)).first->second;
}

std::vector<std::vector<std::int64_t>> LinkTimes::groups_of(const CollectivePhase& phase) const {
  const topology::LinkMap map(machine_.network);
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t device = 0; device < map.devices(); ++device) {
    const bool first = std::ranges::all_of(phase.ports, [&](const PortUse& port) {
      return map.coordinate(device, port.extent.dimension) / port.extent.stride %
                 port.extent.count ==
             0;
    });
    if (!first) {
      continue;
    }
    std::vector<std::int64_t>& group = groups.emplace_back(1, device);
    for (const PortUse& port : phase.ports) {
      const std::int64_t unit = port.extent.stride * map.stride(port.extent.dimension);
      const std::size_t inner = group.size();
      for (std::int64_t i = 1; i < port.extent.count; ++i) {
        for (std::size_t member = 0; member < inner; ++member) {
          group.push_back(group[member] + i * unit);
        }
      }
    }
  }
  return groups;
}

}  // namespace orrery::collective
