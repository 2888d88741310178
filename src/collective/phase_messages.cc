// SPDX-License-Identifier: Apache-2.0
#include "collective/phase_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/lists.h"
#include "collective/algorithm.h"
#include "collective/flat.h"
#include "collective/price.h"
#include "collective/ring_orders.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

std::vector<Extent> extents_in(const CollectivePhase& phase) {
  return mapped(phase.ports, &PortUse::extent);
}

/// Says whether list_of() makes rounds of rings.
bool by_rings(const CollectivePhase& phase) {
  return phase.algorithm == Algorithm::ring &&
         (phase.kind == Kind::all_reduce || phase.kind == Kind::reduce_scatter ||
          phase.kind == Kind::all_gather);
}

/// Returns an upper bound on the messages of any algorithm of schedule.h.
std::int64_t messages_at_most(Kind kind, std::int64_t ranks, std::int64_t rings, double sent) {
  const auto pairs = static_cast<double>(ranks) * static_cast<double>(ranks) * sent;
  const auto all = static_cast<std::int64_t>(2 * pairs) * rings;
  return kind == Kind::send_recv ? ranks : std::max(all, std::int64_t{4} * kMessageChunks * ranks);
}

/// Rings of so many members that one alone has too many messages are not even counted.
std::int64_t messages_at_most(const CollectivePhase& phase, const machine::Machine& machine,
                              double sent) {
  const std::vector<Extent> extents = extents_in(phase);
  const std::int64_t members = members_of(extents);
  const double share = by_rings(phase) ? sent : 1;
  const std::int64_t one = messages_at_most(phase.kind, members, 1, share);
  return row_of(phase.algorithm).rings && one <= kMostMessages
             ? messages_at_most(phase.kind, members, std::ssize(ring_orders(extents, machine)),
                                share)
             : one;
}

Mistake no_messages(const CollectivePhase& phase, std::string expected) {
  return {{}, {}, std::string(name_of(phase.algorithm)), std::move(expected)};
}

Result<void> check_phase(const CollectivePhase& phase, const machine::Machine& machine,
                         double sent) {
  const AlgorithmRow& row = row_of(phase.algorithm);
  const bool flat = phase.ports.size() == 1 || exchanges(phase.kind) || row.rings;
  if (!row.messages || !flat) {
    return fail(Error(no_messages(phase,
                                  "an algorithm that has messages: ring, direct or pairwise over "
                                  "several dimensions, all but themis and rail over one")));
  }
  if (const std::int64_t most = messages_at_most(phase, machine, sent); most > kMostMessages) {
    return fail(Error(no_messages(
        phase,
        fmt::format("one of at most {} messages, not up to {} as {} of {} members has",
                    kMostMessages, most, name_of(phase.kind), members_of(extents_in(phase))))));
  }
  return {};
}

/// Returns the protocol of a port, as cost.cc takes it.
topology::Protocol protocol_of(const CollectivePhase& phase, const PortUse& port,
                               const machine::Machine& machine) {
  const topology::NetworkDimension& dimension =
      machine.network[static_cast<std::size_t>(port.extent.dimension)];
  if (port.protocol < 0) {
    return {.name = {}, .step_latency = dimension.latency + dimension.message_overhead};
  }
  return protocols_of(phase.kind, phase.algorithm,
                      dimension)[static_cast<std::size_t>(port.protocol)];
}

/// Returns the dimensions of the machine at the rates of the phase's protocols.
std::vector<topology::NetworkDimension> dimensions_of(const CollectivePhase& phase,
                                                      const machine::Machine& machine) {
  const AlgorithmRow& row = row_of(phase.algorithm);
  const double share = row.efficiency(phase.kind);
  std::vector<topology::NetworkDimension> dimensions = machine.network;
  const std::vector<Extent> extents = extents_in(phase);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const PortUse& port = phase.ports[i];
    topology::NetworkDimension& own = dimensions[static_cast<std::size_t>(port.extent.dimension)];
    const topology::Protocol protocol = protocol_of(phase, port, machine);
    if (const int through = dimension_through(own, machine); through >= 0) {
      topology::NetworkDimension& inner = dimensions[static_cast<std::size_t>(through)];
      inner.send_efficiency =
          share * protocol_through(phase.kind, row, inner, protocol.name).efficiency;
    }
    own.send_efficiency =
        share * protocol.efficiency *
        topology::share_with_peers(own, peers_at_once(phase.kind, row, extents, i));
  }
  return dimensions;
}

Time own_copy(const CollectivePhase& phase, const machine::Machine& machine) {
  const AlgorithmRow& row = row_of(phase.algorithm);
  if (!row.moves_own_chunk(phase.kind)) {
    return Time(0);
  }
  const PortUse& port = phase.ports.front();
  const topology::NetworkDimension& own =
      machine.network[static_cast<std::size_t>(port.extent.dimension)];
  const topology::Protocol protocol = protocol_of(phase, port, machine);
  const Bytes chunk = phase.size / members_of(extents_in(phase));
  const auto copy = [&](const topology::NetworkDimension& dimension,
                        const topology::Protocol& rates) {
    return rates.local_copy * static_cast<double>(chunk.value()) /
           (rates.efficiency * dimension.bandwidth.value());
  };
  double seconds = copy(own, protocol);
  if (const int through = dimension_through(own, machine); through >= 0) {
    const topology::NetworkDimension& inner = machine.network[static_cast<std::size_t>(through)];
    seconds += copy(inner, protocol_through(phase.kind, row, inner, protocol.name));
  }
  return from_seconds(seconds);
}

}  // namespace

Result<void> check_messages(const std::vector<CollectivePhase>& phases,
                            const machine::Machine& machine, double sent) {
  for (const CollectivePhase& phase : phases) {
    if (auto ok = check_phase(phase, machine, sent); !ok) {
      return ok;
    }
  }
  return {};
}

std::vector<CollectivePhase> plan_messages(Kind kind, Bytes size,
                                           const std::vector<Extent>& extents, Algorithm algorithm,
                                           const machine::Machine& machine) {
  auto phases = plan_collective(kind, size, extents, algorithm, machine);
  const bool chosen = row_of(algorithm).price != nullptr;
  if (chosen && !check_messages(phases, machine)) {
    phases = plan_collective(kind, size, extents,
                             exchanges(kind) ? Algorithm::direct : Algorithm::ring, machine);
  }
  return phases;
}

MessageSchedule schedule_of(const CollectivePhase& phase, const machine::Machine& machine,
                            int chunks) {
  const std::vector<Extent> extents = extents_in(phase);
  const AlgorithmRow& row = row_of(phase.algorithm);
  if (row.rings) {
    return rings(phase.kind, ring_orders(extents, machine), chunks, phase.algorithm);
  }
  const std::vector<int> counts =
      mapped(extents, [&](const Extent& extent) { return static_cast<int>(extent.count); });
  const auto schedule = row.messages ? row.messages(phase.kind, counts, chunks) : std::nullopt;
  return schedule.value_or(MessageSchedule{});
}

MessageList list_of(const CollectivePhase& phase, const machine::Machine& machine) {
  return by_rings(phase)
             ? MessageList::of_rings(phase.kind, ring_orders(extents_in(phase), machine))
             : MessageList(schedule_of(phase, machine));
}

PhaseRoutes::PhaseRoutes(const CollectivePhase& phase, const machine::Machine& machine)
    : lockstep_(row_of(phase.algorithm).lockstep), map_(dimensions_of(phase, machine)) {
  map_.lay(machine.wires);
  for (const topology::NetworkDimension& dimension : machine.network) {
    steps_.push_back(dimension.latency + dimension.message_overhead);
  }
  for (const PortUse& port : phase.ports) {
    const Time step = protocol_of(phase, port, machine).step_latency;
    steps_[static_cast<std::size_t>(port.extent.dimension)] = step;
    slowest_ = std::max(slowest_, step);
  }
}

void PhaseRoutes::append(std::int64_t source, std::int64_t destination,
                         std::vector<topology::Hop>& hops) const {
  const std::size_t first = hops.size();
  map_.route(source, destination, hops);
  const auto d = static_cast<std::size_t>(map_.outermost(source, destination));
  const topology::DimensionKind kind = map_.dimensions()[d].kind;
  const bool lines = kind == topology::DimensionKind::ring || kind == topology::DimensionKind::mesh;
  for (std::size_t h = first; h < hops.size() && !lines; ++h) {
    hops[h].latency = Time(0);  // a step's latency holds that of the route
  }
  hops.back().latency = lockstep_ ? slowest_ : steps_[d];
}

Time setup_of(const CollectivePhase& phase, const machine::Machine& machine) {
  Time launch{0};
  for (const PortUse& port : phase.ports) {
    launch = std::max(launch, protocol_of(phase, port, machine).launch);
  }
  return launch + own_copy(phase, machine) + phase.waits + phase.sends;
}

}  // namespace orrery::collective
