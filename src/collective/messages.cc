// SPDX-License-Identifier: Apache-2.0
#include "collective/messages.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/flat.h"
#include "machine/topology/link_map.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr int kChunks = 16;

bool exchanges(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::send_recv;
}

/// An upper bound on the messages of any algorithm of schedule.h.
std::int64_t messages_at_most(Kind kind, std::int64_t ranks, std::int64_t rings) {
  const std::int64_t pairs = ranks * ranks;
  return kind == Kind::send_recv ? ranks
                                 : std::max(2 * pairs * rings, std::int64_t{4} * kChunks * ranks);
}

/// The ring once for every member of an outermost coordinate, rotated: ring j visits the members
/// of each coordinate beginning with the j-th. Block b of ring j is block j * ranks + b.
MessageSchedule rotated_rings(Kind kind, int ranks, int inside) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): there is a ring of any number of ranks
  const MessageSchedule one = schedule_of(kind, Algorithm::ring, ranks, kChunks).value();
  MessageSchedule all{.kind = kind,
                      .ranks = ranks,
                      .blocks = one.blocks * inside,
                      .block_share = one.block_share / inside,
                      .messages = {}};
  for (int ring = 0; ring < inside; ++ring) {
    const auto member = [&](int place) {
      return place / inside * inside + (place % inside + ring) % inside;
    };
    const int before = static_cast<int>(all.messages.size());
    for (Message message : one.messages) {
      message.sender = member(message.sender);
      message.receiver = member(message.receiver);
      for (int& block : message.blocks) {
        block += ring * one.blocks;
      }
      for (int& earlier : message.after) {
        earlier += before;
      }
      all.messages.push_back(std::move(message));
    }
  }
  return all;
}

std::int64_t members_of(const CollectivePhase& phase) {
  std::int64_t members = 1;
  for (const PortUse& port : phase.ports) {
    members *= port.extent.count;
  }
  return members;
}

/// Whether the phase's algorithm exists message by message over its ports.
bool has_messages(const CollectivePhase& phase) {
  const std::int64_t members = members_of(phase);
  const std::int64_t rings = members / phase.ports.back().extent.count;
  if (messages_at_most(phase.kind, members, rings) > kMostMessages) {
    return false;
  }
  const bool flat =
      phase.ports.size() == 1 || exchanges(phase.kind) || phase.algorithm == Algorithm::ring;
  return flat && phase.algorithm != Algorithm::themis && phase.algorithm != Algorithm::rail &&
         phase.algorithm != Algorithm::in_switch;
}

MessageSchedule schedule_of(const CollectivePhase& phase) {
  const auto members = static_cast<int>(members_of(phase));
  if (phase.ports.size() > 1 && phase.algorithm == Algorithm::ring) {
    const auto outer = static_cast<int>(phase.ports.back().extent.count);
    return rotated_rings(phase.kind, members, members / outer);
  }
  return schedule_of(phase.kind, phase.algorithm, members, kChunks).value_or(MessageSchedule{});
}

/// The protocol of a port, as cost.cc takes it.
Protocol protocol_of(const CollectivePhase& phase, const PortUse& port,
                     const NetworkDimension& dimension) {
  if (port.protocol < 0) {
    return {.name = {}, .step_latency = dimension.latency + dimension.message_overhead};
  }
  return protocols_of(phase.kind, phase.algorithm,
                      dimension)[static_cast<std::size_t>(port.protocol)];
}

/// The members of a phase: those of the group with coordinate 0 in the dimensions that the phase
/// leaves out.
std::vector<std::int64_t> devices_of(const CollectivePhase& phase, const Machine& machine) {
  std::vector<std::int64_t> devices{0};
  for (const PortUse& port : phase.ports) {
    std::int64_t unit = port.extent.stride;
    for (int d = 0; d < port.extent.dimension; ++d) {
      unit *= machine.network[static_cast<std::size_t>(d)].size;
    }
    const std::vector<std::int64_t> inner = std::move(devices);
    devices = {};
    for (std::int64_t i = 0; i < port.extent.count; ++i) {
      for (const std::int64_t device : inner) {
        devices.push_back(device + i * unit);
      }
    }
  }
  return devices;
}

/// Ways and speeds between the members of a phase.
class Network {
 public:
  Network(const CollectivePhase& phase, const Machine& machine)
      : devices_(devices_of(phase, machine)), dimensions_(machine.network) {
    const bool tree =
        phase.kind == Kind::all_reduce && phase.algorithm == Algorithm::double_binary_tree;
    steps_.resize(dimensions_.size());
    for (const PortUse& port : phase.ports) {
      const auto d = static_cast<std::size_t>(port.extent.dimension);
      const Protocol protocol = protocol_of(phase, port, dimensions_[d]);
      steps_[d] = protocol.step_latency;
      slowest_ = std::max(slowest_, protocol.step_latency);
      dimensions_[d].send_efficiency = protocol.efficiency * (tree ? kTreeEfficiency : 1);
    }
    lockstep_ = phase.algorithm == Algorithm::ring;
    map_ = std::make_unique<LinkMap>(dimensions_);
  }

  Wires wires() {
    Wires wires;
    wires.links = static_cast<int>(map_->links());
    wires.speed = [this](int from, int to) { return way(from, to).speed; };
    wires.route = [this](int from, int to) { return way(from, to).links; };
    return wires;
  }

 private:
  struct Way {
    std::vector<int> links;
    Wires::Speed speed;
  };

  const Way& way(int from, int to) {
    const auto [found, fresh] = ways_.try_emplace({from, to});
    if (fresh) {
      const std::int64_t source = devices_[static_cast<std::size_t>(from)];
      const std::int64_t destination = devices_[static_cast<std::size_t>(to)];
      std::vector<Hop> hops;
      map_->route(source, destination, hops);
      Bandwidth slowest = hops.front().bandwidth;
      for (const Hop& hop : hops) {
        found->second.links.push_back(static_cast<int>(hop.link));
        slowest = std::min(slowest, hop.bandwidth);
      }
      const auto d = static_cast<std::size_t>(map_->outermost(source, destination));
      const bool lines =
          dimensions_[d].kind == DimensionKind::ring || dimensions_[d].kind == DimensionKind::mesh;
      found->second.speed = {slowest, lockstep_ ? slowest_ : steps_[d],
                             lines ? dimensions_[d].latency : Time(0)};
    }
    return found->second;
  }

  std::vector<std::int64_t> devices_;
  std::vector<NetworkDimension> dimensions_;
  std::vector<Time> steps_;  ///< step latencies by dimension
  Time slowest_{0};
  bool lockstep_ = false;
  std::unique_ptr<LinkMap> map_;
  std::map<std::pair<int, int>, Way> ways_;
};

Time own_copy(const CollectivePhase& phase, const Machine& machine) {
  const PortUse& port = phase.ports.front();
  const NetworkDimension& dimension =
      machine.network[static_cast<std::size_t>(port.extent.dimension)];
  const Protocol protocol = protocol_of(phase, port, dimension);
  const Bytes chunk = phase.size / members_of(phase);
  const double seconds = protocol.local_copy * static_cast<double>(chunk.value()) /
                         (protocol.efficiency * dimension.bandwidth.value());
  return moves_own_chunk(phase.kind, phase.algorithm) ? from_seconds(seconds) : Time(0);
}

/// Phases with messages, in place of an automatic choice without.
std::vector<CollectivePhase> second_choice(Kind kind, Bytes size,
                                           const std::vector<Extent>& extents,
                                           const Machine& machine) {
  return plan_collective(kind, size, extents, exchanges(kind) ? Algorithm::direct : Algorithm::ring,
                         machine);
}

}  // namespace

std::optional<std::vector<CollectivePhase>> message_plan(Kind kind, Bytes size,
                                                         const MessageGroup& group,
                                                         Algorithm algorithm,
                                                         const Machine& machine) {
  const std::vector<Extent> extents = extents_of(group.stride, group.count, machine);
  auto phases = plan_collective(kind, size, extents, algorithm, machine);
  const bool possible = std::all_of(phases.begin(), phases.end(), has_messages);
  if (!possible && algorithm == Algorithm::automatic) {
    phases = second_choice(kind, size, extents, machine);
  }
  if (!std::all_of(phases.begin(), phases.end(), has_messages)) {
    return std::nullopt;
  }
  return phases;
}

Time message_time(const CollectivePhase& phase, const Machine& machine) {
  Network network(phase, machine);
  const Execution run = execute(schedule_of(phase), phase.size, network.wires());
  Time launch{0};
  for (const PortUse& port : phase.ports) {
    const auto d = static_cast<std::size_t>(port.extent.dimension);
    launch = std::max(launch, protocol_of(phase, port, machine.network[d]).launch);
  }
  return launch + own_copy(phase, machine) + run.end;
}

}  // namespace orrery
