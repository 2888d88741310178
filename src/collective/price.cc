// SPDX-License-Identifier: Apache-2.0
#include "collective/price.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "collective/algorithm.h"
#include "collective/flat.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using Priced = PricedPhase;
using Request = PhaseRequest;

/// One dimension's part of a phase under one protocol, with the share of its bandwidth that its
/// peers at once leave. A coefficient that a protocol gains is one more term here.
struct Part {
  double launch = 0;
  double step = 0;   ///< one step
  double sends = 0;  ///< messages of a member beyond the first of a step
  double rest = 0;   ///< of the latency, all steps together
  LinkSeconds busy;
  int protocol = -1;
};
Part price_part(const Request& request, const StepCount& count,
                const topology::NetworkDimension& dimension, const topology::Protocol& protocol,
                double share, bool own_chunk) {
  const double alone = 1 / (protocol.efficiency * dimension.bandwidth.value());
  const double per_byte = alone / share;
  // A protocol's step is software; message_overhead is that of a send on its own.
  const bool listed = !protocol.name.empty();
  const Time message = listed ? protocol.step_latency : dimension.message_overhead;
  const double chunk = own_chunk ? request.size / request.members : 0;
  return {.launch = to_seconds(protocol.launch),
          .step = to_seconds(protocol.step_latency),
          .sends = count.further_messages * to_seconds(message),
          .rest = count.further_hops * to_seconds(dimension.latency) +
                  protocol.local_copy * chunk * alone,
          .busy = {.own = count.load * request.size * per_byte,
                   .port = count.port * request.size * per_byte}};
}

topology::Protocol default_protocol(const topology::NetworkDimension& dimension) {
  return {.name = {}, .step_latency = dimension.latency + dimension.message_overhead};
}

/// NCCL runs one protocol through all dimensions of a collective: the one of the same name, else
/// what is fastest there.
Part price_like(const Request& request, const StepCount& count,
                const topology::NetworkDimension& dimension, double share,
                const std::string& name) {
  // What one switch adds up goes on over the next dimension as trees do.
  const std::vector<topology::Protocol>& protocols =
      protocols_of(request.kind, Algorithm::double_binary_tree, dimension);
  if (protocols.empty()) {
    return price_part(request, count, dimension, default_protocol(dimension), share, false);
  }
  Part best;
  double best_time = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const topology::Protocol& protocol = protocols[i];
    Part part = price_part(request, count, dimension, protocol, share, false);
    part.protocol = static_cast<int>(i);
    if (protocol.name == name) {
      return part;
    }
    const double time =
        part.launch + count.steps * part.step + part.sends + part.rest + part.busy.own;
    if (time < best_time) {
      best = part;
      best_time = time;
    }
  }
  return best;
}

/// Adds what the dimension's bytes hold beside its own links. A device's own chunk is copied at the
/// rate of its port, wherever the rest goes.
void add_shared(const Request& request, const AlgorithmRow& row, const FlatCount& flat,
                std::size_t i, const std::string& protocol, Part& part) {
  const topology::NetworkDimension& dimension = dimension_of(request.extents[i], request.machine);
  if (dimension.node_bandwidth > Bandwidth(0)) {
    part.busy.node =
        part.busy.own * flat.senders[i] * (dimension.bandwidth / dimension.node_bandwidth);
  }
  const int through = dimension_through(dimension, request.machine);
  if (through >= 0) {
    const topology::NetworkDimension& inner =
        request.machine.network[static_cast<std::size_t>(through)];
    const topology::Protocol passed = protocol_through(request.kind, row, inner, protocol);
    const double per_byte = 1 / (passed.efficiency * inner.bandwidth.value());
    part.busy.through = flat.part[i].load * request.size * per_byte;
    if (i == 0 && row.moves_own_chunk(request.kind)) {
      part.rest += passed.local_copy * request.size / request.members * per_byte;
    }
  }
}

Priced price_protocol(const Request& request, const AlgorithmRow& row, const FlatCount& flat,
                      const topology::Protocol& protocol) {
  Priced priced{.algorithm = row.value, .longest = 0};
  double launch = 0;
  double steps = 0;
  double slowest_step = 0;
  for (std::size_t i = 0; i < flat.parts; ++i) {
    const topology::NetworkDimension& dimension = dimension_of(request.extents[i], request.machine);
    const bool own_chunk = row.moves_own_chunk(request.kind);
    const double share =
        topology::share_with_peers(dimension, peers_at_once(request.kind, row, request.extents, i));
    Part part = i == 0 ? price_part(request, flat.part[i], dimension, protocol, share, own_chunk)
                       : price_like(request, flat.part[i], dimension, share, protocol.name);
    add_shared(request, row, flat, i, protocol.name, part);
    launch = std::max(launch, part.launch);
    priced.sends += part.sends;
    priced.latency += part.rest + (flat.lockstep ? 0 : flat.part[i].steps * part.step);
    steps += flat.part[i].steps;
    slowest_step = std::max(slowest_step, part.step);
    priced.protocols[i] = part.protocol;
    priced.busy[i] = part.busy.times(1 / row.efficiency(request.kind));
  }
  const std::span<const LinkSeconds> busy(priced.busy.data(), flat.parts);
  priced.longest = busiest_link(request.kind, busy, request.extents, request.machine);
  if (row.in_turn) {  // a step is over one dimension
    const double in_turn = std::accumulate(
        busy.begin(), busy.end(), 0.0,
        [](double sum, const LinkSeconds& part) { return sum + std::max(part.own, part.through); });
    priced.longest = std::max(priced.longest, in_turn);
  }
  priced.latency += launch + priced.sends + (flat.lockstep ? steps * slowest_step : 0);
  add_launching(request, protocol, priced);
  return priced;
}

}  // namespace

PricedPhase price_counts(const PhaseRequest& request, const AlgorithmRow& row,
                         std::string_view protocol) {
  FlatCount flat;
  Priced best;
  if (!count_flat(request.kind, row, request.extents, request.machine, flat) ||
      request.extents.front().count < row.least) {
    return best;
  }
  const topology::NetworkDimension& first = dimension_of(request.extents.front(), request.machine);
  const std::vector<topology::Protocol>& protocols = protocols_of(request.kind, row.value, first);
  if (protocols.empty() && row.protocols == nullptr) {
    best = price_protocol(request, row, flat, default_protocol(first));
  }
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    if (protocol.empty() || protocols[i].name == protocol) {
      Priced priced = price_protocol(request, row, flat, protocols[i]);
      priced.protocol = static_cast<int>(i);
      best.keep_faster(priced);
    }
  }
  return best;
}

void add_launching(const PhaseRequest& request, const topology::Protocol& protocol,
                   PricedPhase& priced) {
  if (protocol.buffer_copy > 0 && !request.machine.device.memory.empty()) {
    priced.waits +=
        protocol.buffer_copy * request.size / request.machine.device.memory[0].bandwidth.value();
  }
  const double done = priced.total() + priced.waits;
  priced.waits += std::max(0.0, to_seconds(protocol.at_least) - done);
  priced.latency += priced.waits;
}

int dimension_through(const topology::NetworkDimension& outer, const machine::Machine& machine) {
  for (std::size_t d = 0; d < machine.network.size() && !outer.through.empty(); ++d) {
    if (machine.network[d].name == outer.through) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

topology::Protocol protocol_through(Kind kind, const AlgorithmRow& row,
                                    const topology::NetworkDimension& inner,
                                    const std::string& name) {
  topology::Protocol best = default_protocol(inner);
  best.efficiency = 0;
  for (const topology::Protocol& protocol :
       protocols_of(kind, row.part ? Algorithm::ring : row.value, inner)) {
    if (protocol.name == name) {
      return protocol;
    }
    best = protocol.efficiency > best.efficiency ? protocol : best;
  }
  best.efficiency = best.efficiency > 0 ? best.efficiency : 1;
  return best;
}

double busiest_link(Kind kind, std::span<const LinkSeconds> busy, std::span<const Extent> extents,
                    const machine::Machine& machine) {
  double longest = 0;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const topology::NetworkDimension& dimension = dimension_of(extents[i], machine);
    double port = dimension.nic.empty() ? busy[i].own : busy[i].port;
    double passing = busy[i].through;  // also when this group has nothing else there
    const int through = dimension_through(dimension, machine);
    for (std::size_t j = 0; j < busy.size(); ++j) {
      const topology::NetworkDimension& other = dimension_of(extents[j], machine);
      if (j == i || kind == Kind::send_recv) {
        continue;
      }
      const bool same_nic = !dimension.nic.empty() && other.nic == dimension.nic;
      port += same_nic ? busy[j].port : 0;
      port += dimension_through(other, machine) == extents[i].dimension ? busy[j].through : 0;
      passing += through >= 0 && dimension_through(other, machine) == through ? busy[j].through : 0;
    }
    longest = std::max({longest, busy[i].own, port, passing, busy[i].node});
  }
  return longest;
}

PricedPhase price_algorithm(const PhaseRequest& request, Algorithm algorithm) {
  const AlgorithmRow& row = row_of(algorithm);
  return row.price ? row.price(request, row) : price_counts(request, row, row.launch);
}

PricedPhase price_phase(const PhaseRequest& request, Algorithm algorithm) {
  const Priced priced = price_algorithm(request, algorithm);
  return priced.longest < std::numeric_limits<double>::infinity()
             ? priced
             : price_algorithm(request, Algorithm::automatic);
}

}  // namespace orrery::collective
