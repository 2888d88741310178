// SPDX-License-Identifier: Apache-2.0
#include "collective/cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

#include "collective/chunked.h"
#include "collective/flat.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

const NetworkDimension& dimension_of(const Extent& extent, const Machine& machine) {
  return machine.network[static_cast<std::size_t>(extent.dimension)];
}

/// Messages go from rank to rank, nothing is passed on or added.
bool exchanges(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::send_recv;
}

/// A phase in seconds, before it becomes a CollectivePhase.
struct Priced {
  Algorithm algorithm = Algorithm::ring;
  int protocol = -1;
  double latency = 0;
  double longest = std::numeric_limits<double>::infinity();  ///< serialisation
  std::array<double, kMaxDimensions> serialisation{};
  std::array<int, kMaxDimensions> protocols{};  ///< by port

  double total() const { return latency + longest; }
};

struct Request {
  Kind kind = Kind::all_reduce;
  double size = 0;
  double members = 1;
  std::span<const Extent> extents;
  const Machine& machine;
};

/// One dimension's part of a phase under one protocol. A coefficient that a protocol gains is one
/// more term here.
struct Part {
  double launch = 0;
  double step = 0;  ///< one step
  double rest = 0;  ///< of the latency, all steps together
  double serialisation = 0;
  int protocol = -1;
};
Part price_part(const Request& request, const StepCount& count, const NetworkDimension& dimension,
                const Protocol& protocol, bool own_chunk) {
  const double per_byte = 1 / (protocol.efficiency * dimension.bandwidth.value());
  // A protocol's step is software; message_overhead is that of a send on its own.
  const bool listed = !protocol.name.empty();
  const Time message = listed ? protocol.step_latency : dimension.message_overhead;
  const double chunk = own_chunk ? request.size / request.members : 0;
  return {.launch = to_seconds(protocol.launch),
          .step = to_seconds(protocol.step_latency),
          .rest = count.further_messages * to_seconds(message) +
                  count.further_hops * to_seconds(dimension.latency) +
                  protocol.local_copy * chunk * per_byte,
          .serialisation = count.load * request.size * per_byte};
}

double efficiency_of(Kind kind, Algorithm algorithm) {
  const bool tree = kind == Kind::all_reduce && algorithm == Algorithm::double_binary_tree;
  return tree ? kTreeEfficiency : 1;
}

Protocol default_protocol(const NetworkDimension& dimension) {
  return {.name = {}, .step_latency = dimension.latency + dimension.message_overhead};
}

/// NCCL runs one protocol through all dimensions of a collective: the one of the same name, else
/// what is fastest there.
Part price_like(const Request& request, const StepCount& count, const NetworkDimension& dimension,
                const std::string& name) {
  // What one switch adds up goes on over the next dimension as trees do.
  const std::vector<Protocol>& protocols =
      protocols_of(request.kind, Algorithm::double_binary_tree, dimension);
  if (protocols.empty()) {
    return price_part(request, count, dimension, default_protocol(dimension), false);
  }
  Part best;
  double best_time = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const Protocol& protocol = protocols[i];
    Part part = price_part(request, count, dimension, protocol, false);
    part.protocol = static_cast<int>(i);
    if (protocol.name == name) {
      return part;
    }
    const double time = part.launch + count.steps * part.step + part.rest + part.serialisation;
    if (time < best_time) {
      best = part;
      best_time = time;
    }
  }
  return best;
}

Priced price_protocol(const Request& request, Algorithm algorithm, const FlatCount& flat,
                      const Protocol& protocol) {
  Priced priced{.algorithm = algorithm, .longest = 0};
  double launch = 0;
  double steps = 0;
  double slowest_step = 0;
  for (std::size_t i = 0; i < flat.parts; ++i) {
    const NetworkDimension& dimension = dimension_of(request.extents[i], request.machine);
    const bool own_chunk = moves_own_chunk(request.kind, algorithm);
    const Part part = i == 0 ? price_part(request, flat.part[i], dimension, protocol, own_chunk)
                             : price_like(request, flat.part[i], dimension, protocol.name);
    launch = std::max(launch, part.launch);
    priced.latency += part.rest + (flat.lockstep ? 0 : flat.part[i].steps * part.step);
    steps += flat.part[i].steps;
    slowest_step = std::max(slowest_step, part.step);
    priced.protocols[i] = part.protocol;
    priced.serialisation[i] = part.serialisation / efficiency_of(request.kind, algorithm);
    priced.longest = std::max(priced.longest, priced.serialisation[i]);
  }
  priced.latency += launch + (flat.lockstep ? steps * slowest_step : 0);
  return priced;
}

void keep_faster(Priced& best, const Priced& other) {
  if (other.total() < best.total()) {
    best = other;
  }
}

/// NCCL leaves smaller groups to rings: all-reduces of 64 MiB over 4 of 8 H100 take a ring's time,
/// over 8 less (ai-dynamo/aiconfigurator@095f58a51c4c, NCCL 2.27.3).
constexpr std::int64_t kLeastInSwitch = 5;

/// The fastest protocol; infinite when the algorithm does not do the request.
Priced price_algorithm(const Request& request, Algorithm algorithm) {
  FlatCount flat;
  Priced best;
  if (!count_flat(request.kind, algorithm, request.extents, request.machine, flat)) {
    return best;
  }
  const NetworkDimension& first = dimension_of(request.extents.front(), request.machine);
  const bool adds = algorithm == Algorithm::in_switch;
  if (adds && request.extents.front().count < kLeastInSwitch) {
    return best;
  }
  const std::vector<Protocol>& protocols = protocols_of(request.kind, algorithm, first);
  if (protocols.empty() && !adds) {
    best = price_protocol(request, algorithm, flat, default_protocol(first));
  }
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    Priced priced = price_protocol(request, algorithm, flat, protocols[i]);
    priced.protocol = static_cast<int>(i);
    keep_faster(best, priced);
  }
  return best;
}

/// Over two or three nodes a tree's busiest port carries less than a ring's. Measured all-reduces
/// do not show it: 64 MiB over two nodes of 1, 2 and 4 A100 take 1.33, 1.32 and 1.39 times the
/// ring's port time at the bandwidth of send_recv between the same nodes, but would be 1.3, 1.8
/// and 2.3 times the tree's (microsoft/vidur@7d47513363ec, a100_dgx). So `auto` gives a tree the
/// ring's port time at most, and takes it for its few steps only.
void charge_like_ring(Priced& tree, const Priced& ring) {
  const double slower = ring.longest / kTreeEfficiency / tree.longest;
  if (slower > 1 && std::isfinite(slower)) {
    for (double& serialisation : tree.serialisation) {
      serialisation *= slower;
    }
    tree.longest *= slower;
  }
}

/// Messages from rank to rank.
Priced price_exchange(const Request& request) {
  Priced best = price_algorithm(request, Algorithm::direct);
  if (request.kind == Kind::all_to_all) {
    keep_faster(best, price_algorithm(request, Algorithm::pairwise));
    keep_faster(best, price_algorithm(request, Algorithm::rail));
  }
  return best;
}

/// Inside a node NCCL's tree is a chain of as many steps as the ring, so trees are only tried for
/// groups that leave the innermost dimension.
Priced price_automatic(const Request& request) {
  const bool leaves = request.extents.back().dimension > 0;
  if (exchanges(request.kind)) {
    return price_exchange(request);
  }
  const Priced ring = price_algorithm(request, Algorithm::ring);
  Priced best = ring;
  if (request.kind == Kind::all_reduce) {
    Priced added = price_algorithm(request, Algorithm::in_switch);
    if (request.extents.size() > 1) {
      charge_like_ring(added, ring);
    }
    keep_faster(best, added);
  }
  if (leaves && (request.kind == Kind::all_reduce || request.kind == Kind::broadcast)) {
    Priced tree = price_algorithm(request, Algorithm::double_binary_tree);
    if (request.kind == Kind::all_reduce) {
      charge_like_ring(tree, ring);
    }
    keep_faster(best, tree);
  }
  return best;
}

Priced price(const Request& request, Algorithm algorithm) {
  const Priced priced = price_algorithm(request, algorithm);
  return priced.longest < std::numeric_limits<double>::infinity() ? priced
                                                                  : price_automatic(request);
}

/// One phase over the given extents.
template <class Emit>
void emit_phase(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                const Machine& machine, const Emit& emit) {
  const Request request{.kind = kind,
                        .size = static_cast<double>(size.value()),
                        .members = static_cast<double>(members_of(extents)),
                        .extents = extents,
                        .machine = machine};
  emit(kind, size, extents, price(request, algorithm));
}

/// A phase per dimension: outwards for reduce_scatter and all_to_all, inwards for all_gather and
/// broadcast, there and back for all_reduce.
template <class Emit>
void emit_hierarchy(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                    const Machine& machine, const Emit& emit) {
  const auto phase = [&](Kind part, std::size_t i) {
    const bool shrinks = kind != Kind::all_to_all && kind != Kind::broadcast;
    const Bytes inside = shrinks ? size / members_of(extents.first(i)) : size;
    emit_phase(part, inside, extents.subspan(i, 1), algorithm, machine, emit);
  };
  const std::size_t outermost = extents.size() - 1;
  if (kind == Kind::reduce_scatter || kind == Kind::all_reduce || kind == Kind::all_to_all) {
    for (std::size_t i = 0; i < outermost; ++i) {
      phase(kind == Kind::all_reduce ? Kind::reduce_scatter : kind, i);
    }
  }
  phase(kind, outermost);
  if (kind == Kind::all_gather || kind == Kind::all_reduce || kind == Kind::broadcast) {
    for (std::size_t i = outermost; i-- > 0;) {
      phase(kind == Kind::all_reduce ? Kind::all_gather : kind, i);
    }
  }
}

bool goes_by_dimension(Kind kind, Algorithm algorithm) {
  return (kind != Kind::send_recv && algorithm == Algorithm::hierarchical) ||
         (!exchanges(kind) &&
          (algorithm == Algorithm::direct || algorithm == Algorithm::halving_doubling));
}

template <class Emit>
void emit_collective(Kind kind, Bytes size, std::span<const Extent> extents, Algorithm algorithm,
                     const Machine& machine, const Emit& emit) {
  if (extents.empty() || size <= Bytes(0)) {
    return;
  }
  if (extents.size() > 1 && goes_by_dimension(kind, algorithm)) {
    emit_hierarchy(kind, size, extents, algorithm, machine, emit);
  } else {
    emit_phase(kind, size, extents, algorithm, machine, emit);
  }
}

}  // namespace

bool moves_own_chunk(Kind kind, Algorithm algorithm) {
  return kind != Kind::broadcast && kind != Kind::send_recv &&
         algorithm != Algorithm::double_binary_tree;
}

const std::vector<Protocol>& protocols_of(Kind kind, Algorithm algorithm,
                                          const NetworkDimension& dimension) {
  if (algorithm == Algorithm::in_switch) {
    return dimension.in_switch;
  }
  return exchanges(kind) && !dimension.exchange.empty() ? dimension.exchange : dimension.protocols;
}

bool performs(Kind kind, Algorithm algorithm, const std::vector<Extent>& extents,
              const Machine& machine) {
  if (algorithm == Algorithm::automatic || extents.empty()) {
    return true;
  }
  if (algorithm == Algorithm::themis) {
    return reorders(kind);
  }
  if (extents.size() > 1 && goes_by_dimension(kind, algorithm)) {
    return algorithm == Algorithm::hierarchical ||
           std::all_of(extents.begin(), extents.end(), [&](const Extent& extent) {
             return performs(kind, algorithm, {extent}, machine);
           });
  }
  const Request request{.kind = kind,
                        .size = 1,
                        .members = static_cast<double>(members_of(extents)),
                        .extents = extents,
                        .machine = machine};
  return std::isfinite(price_algorithm(request, algorithm).longest);
}

std::vector<CollectivePhase> plan_collective(Kind kind, Bytes size,
                                             const std::vector<Extent>& extents,
                                             Algorithm algorithm, const Machine& machine) {
  if (algorithm == Algorithm::themis) {
    return plan_chunked(kind, size, extents, {}, machine);
  }
  std::vector<CollectivePhase> phases;
  const auto append = [&](Kind part, Bytes bytes, std::span<const Extent> over,
                          const Priced& priced) {
    CollectivePhase phase{.kind = part,
                          .algorithm = priced.algorithm,
                          .protocol = priced.protocol,
                          .size = bytes,
                          .latency = from_seconds(priced.latency),
                          .ports = {}};
    phase.ports.reserve(over.size());
    for (std::size_t i = 0; i < over.size(); ++i) {
      phase.ports.push_back({over[i], from_seconds(priced.serialisation[i]),
                             i == 0 ? priced.protocol : priced.protocols[i]});
    }
    phases.push_back(std::move(phase));
  };
  emit_collective(kind, size, extents, algorithm, machine, append);
  return phases;
}

Time total_time(const std::vector<CollectivePhase>& phases) {
  Time total{0};
  for (const CollectivePhase& phase : phases) {
    Time longest{0};
    for (const PortUse& port : phase.ports) {
      longest = std::max(longest, port.serialisation);
    }
    total += phase.latency + longest;
  }
  return total;
}

Time collective_time(Kind kind, Bytes size, const std::vector<Extent>& extents, Algorithm algorithm,
                     const Machine& machine) {
  if (algorithm == Algorithm::themis) {
    return total_time(plan_chunked(kind, size, extents, {}, machine));
  }
  Time total{0};
  const auto add = [&](Kind, Bytes, std::span<const Extent>, const Priced& priced) {
    total += from_seconds(priced.latency) + from_seconds(priced.longest);
  };
  emit_collective(kind, size, extents, algorithm, machine, add);
  return total;
}

}  // namespace orrery
