// SPDX-License-Identifier: Apache-2.0
#include "collective/messages.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/flat.h"
#include "collective/price.h"
#include "collective/ring_orders.h"
#include "machine/topology/link_map.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

bool exchanges(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::send_recv;
}

/// An upper bound on the messages of any algorithm of schedule.h.
std::int64_t messages_at_most(Kind kind, std::int64_t ranks, std::int64_t rings) {
  const std::int64_t pairs = ranks * ranks;
  return kind == Kind::send_recv
             ? ranks
             : std::max(2 * pairs * rings, std::int64_t{4} * MessageCuts().chunks * ranks);
}

std::vector<Extent> extents_of(const CollectivePhase& phase) {
  std::vector<Extent> extents;
  for (const PortUse& port : phase.ports) {
    extents.push_back(port.extent);
  }
  return extents;
}

/// Whether the phase's algorithm exists message by message over its ports.
bool has_messages(const CollectivePhase& phase, const Machine& machine) {
  const std::vector<Extent> extents = extents_of(phase);
  const bool ring = phase.algorithm == Algorithm::ring;
  const auto members = members_of(extents);
  const std::int64_t rings = ring && 2 * members * members <= kMostMessages
                                 ? std::ssize(ring_orders(extents, machine))
                                 : 1;
  if (messages_at_most(phase.kind, members, rings) > kMostMessages) {
    return false;
  }
  const bool flat = phase.ports.size() == 1 || exchanges(phase.kind) || ring;
  return flat && phase.algorithm != Algorithm::themis && phase.algorithm != Algorithm::rail &&
         phase.algorithm != Algorithm::in_switch;
}

MessageSchedule schedule_of(const CollectivePhase& phase, const Machine& machine, int chunks) {
  const std::vector<Extent> extents = extents_of(phase);
  if (phase.algorithm == Algorithm::ring) {
    return rings(phase.kind, ring_orders(extents, machine), chunks);
  }
  if (phase.kind == Kind::all_to_all) {
    std::vector<int> counts;
    for (const Extent& extent : extents) {
      counts.push_back(static_cast<int>(extent.count));
    }
    return exchange_schedule(counts, phase.algorithm == Algorithm::pairwise);
  }
  return schedule_of(phase.kind, phase.algorithm, static_cast<int>(members_of(extents)), chunks)
      .value_or(MessageSchedule{});
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

/// Devices from one coordinate of a dimension to the next.
std::int64_t stride_of(int dimension, const Machine& machine) {
  std::int64_t stride = 1;
  for (int d = 0; d < dimension; ++d) {
    stride *= machine.network[static_cast<std::size_t>(d)].size;
  }
  return stride;
}

/// The members of a phase in the group of `first`, innermost dimension first.
std::vector<std::int64_t> members_from(std::int64_t first, const CollectivePhase& phase,
                                       const Machine& machine) {
  std::vector<std::int64_t> devices{first};
  for (const PortUse& port : phase.ports) {
    const std::int64_t unit = port.extent.stride * stride_of(port.extent.dimension, machine);
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

/// The links of a machine at the rates of a phase's protocols, and the ways on them.
class Network {
 public:
  Network(const CollectivePhase& phase, const Machine& machine) : dimensions_(machine.network) {
    const bool tree =
        phase.kind == Kind::all_reduce && phase.algorithm == Algorithm::double_binary_tree;
    steps_.resize(dimensions_.size());
    for (const PortUse& port : phase.ports) {
      const auto d = static_cast<std::size_t>(port.extent.dimension);
      const Protocol protocol = protocol_of(phase, port, machine.network[d]);
      const int through = dimension_through(dimensions_[d], machine);
      if (through >= 0) {
        NetworkDimension& inner = dimensions_[static_cast<std::size_t>(through)];
        inner.send_efficiency =
            protocol_through(phase.kind, phase.algorithm, inner, protocol.name).efficiency *
            (tree ? kTreeEfficiency : 1);
      }
      steps_[d] = protocol.step_latency;
      slowest_ = std::max(slowest_, protocol.step_latency);
      dimensions_[d].send_efficiency = protocol.efficiency * (tree ? kTreeEfficiency : 1);
    }
    lockstep_ = phase.algorithm == Algorithm::ring;
    map_ = std::make_unique<LinkMap>(dimensions_);
  }

  Wires wires() {
    return {.links = map_->links(),
            .way = [this](std::int64_t from, std::int64_t to) -> const MessageWay& {
              return way(from, to);
            }};
  }

 private:
  const MessageWay& way(std::int64_t source, std::int64_t destination) {
    const auto [found, fresh] = ways_.try_emplace({source, destination});
    MessageWay& way = found->second;
    if (fresh) {
      map_->route(source, destination, way.hops);
      const auto d = static_cast<std::size_t>(map_->outermost(source, destination));
      const bool lines =
          dimensions_[d].kind == DimensionKind::ring || dimensions_[d].kind == DimensionKind::mesh;
      for (Hop& hop : way.hops) {  // a step's latency holds that of one link
        hop.latency = lines ? hop.latency : Time(0);
      }
      way.hops.back().latency = Time(0);
      way.after = lockstep_ ? slowest_ : steps_[d];
    }
    return way;
  }

  std::vector<NetworkDimension> dimensions_;
  std::vector<Time> steps_;  ///< step latencies by dimension
  Time slowest_{0};
  bool lockstep_ = false;
  std::unique_ptr<LinkMap> map_;
  std::map<std::pair<std::int64_t, std::int64_t>, MessageWay> ways_;
};

Time own_copy(const CollectivePhase& phase, const Machine& machine) {
  const PortUse& port = phase.ports.front();
  const NetworkDimension& dimension =
      machine.network[static_cast<std::size_t>(port.extent.dimension)];
  const Protocol protocol = protocol_of(phase, port, dimension);
  const Bytes chunk = phase.size / members_of(extents_of(phase));
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

bool all_have_messages(const std::vector<CollectivePhase>& phases, const Machine& machine) {
  return std::all_of(phases.begin(), phases.end(),
                     [&](const CollectivePhase& phase) { return has_messages(phase, machine); });
}

}  // namespace

std::optional<std::vector<CollectivePhase>> message_plan(Kind kind, Bytes size,
                                                         const MessageGroup& group,
                                                         Algorithm algorithm,
                                                         const Machine& machine) {
  const std::vector<Extent> extents = extents_of(group.stride, group.count, machine);
  auto phases = plan_collective(kind, size, extents, algorithm, machine);
  const bool possible = all_have_messages(phases, machine);
  if (!possible && algorithm == Algorithm::automatic) {
    phases = second_choice(kind, size, extents, machine);
  }
  if (!all_have_messages(phases, machine)) {
    return std::nullopt;
  }
  return phases;
}

DeviceGroups groups_of(const CollectivePhase& phase, const Machine& machine) {
  DeviceGroups groups;
  const std::int64_t devices = stride_of(static_cast<int>(machine.network.size()), machine);
  for (std::int64_t device = 0; device < devices; ++device) {
    const bool first =
        std::all_of(phase.ports.begin(), phase.ports.end(), [&](const PortUse& port) {
          const auto size = machine.network[static_cast<std::size_t>(port.extent.dimension)].size;
          const std::int64_t place = device / stride_of(port.extent.dimension, machine) % size;
          return place / port.extent.stride % port.extent.count == 0;
        });
    if (first) {
      groups.push_back(members_from(device, phase, machine));
    }
  }
  return groups;
}

Time message_time(const CollectivePhase& phase, const DeviceGroups& groups, const Machine& machine,
                  const MessageCuts& cuts) {
  Network network(phase, machine);
  const MessageSchedule schedule =
      together(schedule_of(phase, machine, cuts.chunks), groups, cuts.slices);
  const Execution run = execute(schedule, phase.size, network.wires());
  Time launch{0};
  for (const PortUse& port : phase.ports) {
    const auto d = static_cast<std::size_t>(port.extent.dimension);
    launch = std::max(launch, protocol_of(phase, port, machine.network[d]).launch);
  }
  return launch + own_copy(phase, machine) + run.end;
}

Time message_time(const CollectivePhase& phase, const Machine& machine) {
  return message_time(phase, {members_from(0, phase, machine)}, machine);
}

}  // namespace orrery
