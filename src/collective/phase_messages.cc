// SPDX-License-Identifier: Apache-2.0
#include "collective/phase_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "collective/flat.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

bool exchanges(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::send_recv;
}

std::int64_t members_of(const CollectivePhase& phase) {
  std::int64_t members = 1;
  for (const PortUse& port : phase.ports) {
    members *= port.extent.count;
  }
  return members;
}

/// An upper bound on the messages of any algorithm of schedule.h.
std::int64_t messages_at_most(Kind kind, std::int64_t ranks, std::int64_t rings) {
  const std::int64_t pairs = ranks * ranks;
  return kind == Kind::send_recv
             ? ranks
             : std::max(2 * pairs * rings, std::int64_t{4} * kMessageChunks * ranks);
}

/// The ring once for every member of an outermost coordinate, rotated: ring j visits the members
/// of each coordinate beginning with the j-th. Block b of ring j is block j * ranks + b.
MessageSchedule rotated_rings(Kind kind, int ranks, int inside) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): there is a ring of any number of ranks
  const MessageSchedule one = schedule_of(kind, Algorithm::ring, ranks, kMessageChunks).value();
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

Mistake no_messages(const CollectivePhase& phase, std::string expected) {
  return {{}, {}, std::string(name_of(phase.algorithm)), std::move(expected)};
}

Result<void> check_phase(const CollectivePhase& phase) {
  const bool ring = phase.algorithm == Algorithm::ring;
  const bool one_dimension = phase.ports.size() == 1;
  const bool messages = phase.algorithm != Algorithm::themis &&
                        phase.algorithm != Algorithm::rail &&
                        phase.algorithm != Algorithm::in_switch;
  if (!messages || (!one_dimension && !exchanges(phase.kind) && !ring)) {
    return fail(Error(no_messages(phase,
                                  "an algorithm that has messages: ring, direct or pairwise over "
                                  "several dimensions, all but in_switch over one")));
  }
  const std::int64_t rings = one_dimension ? 1 : phase.ports.front().extent.count;
  const std::int64_t members = members_of(phase);
  if (const std::int64_t most = messages_at_most(phase.kind, members, rings);
      most > kMostMessages) {
    return fail(
        Error(no_messages(phase, fmt::format("at most {} messages; {} of {} members has up to {}",
                                             kMostMessages, name_of(phase.kind), members, most))));
  }
  return {};
}

/// The protocol of a port, as cost.cc takes it.
Protocol protocol_of(const CollectivePhase& phase, const PortUse& port, const Machine& machine) {
  const NetworkDimension& dimension =
      machine.network[static_cast<std::size_t>(port.extent.dimension)];
  if (port.protocol < 0) {
    return {.name = {}, .step_latency = dimension.latency + dimension.message_overhead};
  }
  return protocols_of(phase.kind, phase.algorithm,
                      dimension)[static_cast<std::size_t>(port.protocol)];
}

/// Those of the machine at the rates of the phase's protocols.
std::vector<NetworkDimension> dimensions_of(const CollectivePhase& phase, const Machine& machine) {
  const bool tree =
      phase.kind == Kind::all_reduce && phase.algorithm == Algorithm::double_binary_tree;
  std::vector<NetworkDimension> dimensions = machine.network;
  for (const PortUse& port : phase.ports) {
    dimensions[static_cast<std::size_t>(port.extent.dimension)].send_efficiency =
        protocol_of(phase, port, machine).efficiency * (tree ? kTreeEfficiency : 1);
  }
  return dimensions;
}

Time own_copy(const CollectivePhase& phase, const Machine& machine) {
  if (!moves_own_chunk(phase.kind, phase.algorithm)) {
    return Time(0);
  }
  const PortUse& port = phase.ports.front();
  const Bandwidth bandwidth =
      machine.network[static_cast<std::size_t>(port.extent.dimension)].bandwidth;
  const Protocol protocol = protocol_of(phase, port, machine);
  const Bytes chunk = phase.size / members_of(phase);
  return from_seconds(protocol.local_copy * static_cast<double>(chunk.value()) /
                      (protocol.efficiency * bandwidth.value()));
}

}  // namespace

Result<void> check_messages(const std::vector<CollectivePhase>& phases) {
  for (const CollectivePhase& phase : phases) {
    if (auto ok = check_phase(phase); !ok) {
      return ok;
    }
  }
  return {};
}

std::vector<CollectivePhase> plan_messages(Kind kind, Bytes size,
                                           const std::vector<Extent>& extents, Algorithm algorithm,
                                           const Machine& machine) {
  auto phases = plan_collective(kind, size, extents, algorithm, machine);
  if (algorithm == Algorithm::automatic && !check_messages(phases)) {
    phases = plan_collective(kind, size, extents,
                             exchanges(kind) ? Algorithm::direct : Algorithm::ring, machine);
  }
  return phases;
}

MessageSchedule schedule_of(const CollectivePhase& phase) {
  const auto members = static_cast<int>(members_of(phase));
  if (phase.ports.size() > 1 && phase.algorithm == Algorithm::ring) {
    const auto outer = static_cast<int>(phase.ports.back().extent.count);
    return rotated_rings(phase.kind, members, members / outer);
  }
  return schedule_of(phase.kind, phase.algorithm, members, kMessageChunks)
      .value_or(MessageSchedule{});
}

PhaseWays::PhaseWays(const CollectivePhase& phase, const Machine& machine)
    : lockstep_(phase.algorithm == Algorithm::ring), map_(dimensions_of(phase, machine)) {
  for (const NetworkDimension& dimension : machine.network) {
    steps_.push_back(dimension.latency + dimension.message_overhead);
  }
  for (const PortUse& port : phase.ports) {
    const Time step = protocol_of(phase, port, machine).step_latency;
    steps_[static_cast<std::size_t>(port.extent.dimension)] = step;
    slowest_ = std::max(slowest_, step);
  }
}

void PhaseWays::append(std::int64_t source, std::int64_t destination,
                       std::vector<Hop>& hops) const {
  const std::size_t first = hops.size();
  map_.route(source, destination, hops);
  const auto d = static_cast<std::size_t>(map_.outermost(source, destination));
  const DimensionKind kind = map_.dimensions()[d].kind;
  const bool lines = kind == DimensionKind::ring || kind == DimensionKind::mesh;
  for (std::size_t h = first; h < hops.size() && !lines; ++h) {
    hops[h].latency = Time(0);  // a step's latency holds that of the way
  }
  hops.back().latency = lockstep_ ? slowest_ : steps_[d];
}

Time setup_of(const CollectivePhase& phase, const Machine& machine) {
  Time launch{0};
  for (const PortUse& port : phase.ports) {
    launch = std::max(launch, protocol_of(phase, port, machine).launch);
  }
  return launch + own_copy(phase, machine);
}

}  // namespace orrery
