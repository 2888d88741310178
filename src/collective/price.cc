// SPDX-License-Identifier: Apache-2.0
#include "collective/price.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

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

double efficiency_of(Kind kind, Algorithm algorithm) {
  const bool tree = kind == Kind::all_reduce && algorithm == Algorithm::double_binary_tree;
  return tree ? kTreeEfficiency : 1;
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
void add_shared(const Request& request, Algorithm algorithm, const FlatCount& flat, std::size_t i,
                const std::string& protocol, Part& part) {
  const topology::NetworkDimension& dimension = dimension_of(request.extents[i], request.machine);
  if (dimension.node_bandwidth > Bandwidth(0)) {
    part.busy.node =
        part.busy.own * flat.senders[i] * (dimension.bandwidth / dimension.node_bandwidth);
  }
  const int through = dimension_through(dimension, request.machine);
  if (through >= 0) {
    const topology::NetworkDimension& inner =
        request.machine.network[static_cast<std::size_t>(through)];
    const topology::Protocol passed = protocol_through(request.kind, algorithm, inner, protocol);
    const double per_byte = 1 / (passed.efficiency * inner.bandwidth.value());
    part.busy.through = flat.part[i].load * request.size * per_byte;
    if (i == 0 && moves_own_chunk(request.kind, algorithm)) {
      part.rest += passed.local_copy * request.size / request.members * per_byte;
    }
  }
}

/// Adds what launching costs: copies of the whole buffer in the device's first memory, and the
/// host.
void add_launching(const Request& request, const topology::Protocol& protocol, Priced& priced) {
  if (protocol.buffer_copy > 0 && !request.machine.device.memory.empty()) {
    priced.waits +=
        protocol.buffer_copy * request.size / request.machine.device.memory[0].bandwidth.value();
  }
  const double done = priced.total() + priced.waits;
  priced.waits += std::max(0.0, to_seconds(protocol.at_least) - done);
  priced.latency += priced.waits;
}

LinkSeconds scaled(LinkSeconds busy, double factor) {
  return {busy.own * factor, busy.port * factor, busy.through * factor, busy.node * factor};
}

Priced price_protocol(const Request& request, Algorithm algorithm, const FlatCount& flat,
                      const topology::Protocol& protocol) {
  Priced priced{.algorithm = algorithm, .longest = 0};
  double launch = 0;
  double steps = 0;
  double slowest_step = 0;
  for (std::size_t i = 0; i < flat.parts; ++i) {
    const topology::NetworkDimension& dimension = dimension_of(request.extents[i], request.machine);
    const bool own_chunk = moves_own_chunk(request.kind, algorithm);
    const double share = topology::share_with_peers(
        dimension, peers_at_once(request.kind, algorithm, request.extents, i));
    Part part = i == 0 ? price_part(request, flat.part[i], dimension, protocol, share, own_chunk)
                       : price_like(request, flat.part[i], dimension, share, protocol.name);
    add_shared(request, algorithm, flat, i, protocol.name, part);
    launch = std::max(launch, part.launch);
    priced.sends += part.sends;
    priced.latency += part.rest + (flat.lockstep ? 0 : flat.part[i].steps * part.step);
    steps += flat.part[i].steps;
    slowest_step = std::max(slowest_step, part.step);
    priced.protocols[i] = part.protocol;
    priced.busy[i] = scaled(part.busy, 1 / efficiency_of(request.kind, algorithm));
  }
  const std::span<const LinkSeconds> busy(priced.busy.data(), flat.parts);
  priced.longest = busiest_link(request.kind, busy, request.extents, request.machine);
  if (algorithm == Algorithm::pairwise) {  // a step is over one dimension
    const double in_turn = std::accumulate(
        busy.begin(), busy.end(), 0.0,
        [](double sum, const LinkSeconds& part) { return sum + std::max(part.own, part.through); });
    priced.longest = std::max(priced.longest, in_turn);
  }
  priced.latency += launch + priced.sends + (flat.lockstep ? steps * slowest_step : 0);
  add_launching(request, protocol, priced);
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

/// Over two or three nodes a tree's busiest port carries less than a ring's. Measured all-reduces
/// do not show it: 64 MiB over two nodes of 1, 2 and 4 A100 take 1.33, 1.32 and 1.39 times the
/// ring's port time at the bandwidth of send_recv between the same nodes, but would be 1.3, 1.8
/// and 2.3 times the tree's (microsoft/vidur@7d47513363ec, a100_dgx). So `auto` gives a tree the
/// ring's port time at most, and takes it for its few steps only.
void charge_like_ring(Priced& tree, const Priced& ring) {
  const double slower = ring.longest / kTreeEfficiency / tree.longest;
  if (slower > 1 && std::isfinite(slower)) {
    for (LinkSeconds& busy : tree.busy) {
      busy = scaled(busy, slower);
    }
    tree.longest *= slower;
  }
}

/// Messages from rank to rank. NCCL's are all in flight at once: where that costs a port bandwidth
/// it has no exchanges in turn.
Priced price_exchange(const Request& request) {
  Priced best = price_algorithm(request, Algorithm::direct);
  if (request.kind == Kind::all_to_all) {
    if (!peers_count(request.extents, request.machine)) {
      keep_faster(best, price_algorithm(request, Algorithm::pairwise));
    }
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

bool needs_protocols(Algorithm algorithm) {
  return algorithm == Algorithm::in_switch || algorithm == Algorithm::one_shot ||
         algorithm == Algorithm::two_shot;
}

/// With the protocol of this name, or of any name.
Priced price_named(const Request& request, Algorithm algorithm, std::string_view name) {
  FlatCount flat;
  Priced best;
  if (!count_flat(request.kind, algorithm, request.extents, request.machine, flat)) {
    return best;
  }
  const topology::NetworkDimension& first = dimension_of(request.extents.front(), request.machine);
  if (algorithm == Algorithm::in_switch && request.extents.front().count < kLeastInSwitch) {
    return best;
  }
  const std::vector<topology::Protocol>& protocols = protocols_of(request.kind, algorithm, first);
  if (protocols.empty() && !needs_protocols(algorithm)) {
    best = price_protocol(request, algorithm, flat, default_protocol(first));
  }
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    if (name.empty() || protocols[i].name == name) {
      Priced priced = price_protocol(request, algorithm, flat, protocols[i]);
      priced.protocol = static_cast<int>(i);
      keep_faster(best, priced);
    }
  }
  return best;
}

/// A serving engine's choice: its kernels where they are faster than the library, which it calls
/// in the same way: what launching costs its kernels (buffer_copy, at_least) the library pays too.
Priced price_custom(const Request& request, std::string_view launch) {
  const topology::NetworkDimension& first = dimension_of(request.extents.front(), request.machine);
  const auto& kernels = first.one_shot.empty() ? first.two_shot : first.one_shot;
  const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                   [&](const auto& each) { return each.name == launch; });
  if (request.kind != Kind::all_reduce || request.extents.size() > 1 || kernel == kernels.end()) {
    return {};
  }
  Priced best = price_automatic(request);
  add_launching(request, *kernel, best);
  keep_faster(best, price_named(request, Algorithm::one_shot, launch));
  keep_faster(best, price_named(request, Algorithm::two_shot, launch));
  return best;
}

}  // namespace

int dimension_through(const topology::NetworkDimension& outer, const machine::Machine& machine) {
  for (std::size_t d = 0; d < machine.network.size() && !outer.through.empty(); ++d) {
    if (machine.network[d].name == outer.through) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

topology::Protocol protocol_through(Kind kind, Algorithm algorithm,
                                    const topology::NetworkDimension& inner,
                                    const std::string& name) {
  topology::Protocol best = default_protocol(inner);
  best.efficiency = 0;
  for (const topology::Protocol& protocol :
       protocols_of(kind, algorithm == Algorithm::in_switch ? Algorithm::ring : algorithm, inner)) {
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
  const bool chooses = algorithm == Algorithm::custom || algorithm == Algorithm::custom_eager ||
                       algorithm == Algorithm::custom_trtllm;
  return chooses ? price_custom(request, launch_of(algorithm))
                 : price_named(request, algorithm, launch_of(algorithm));
}

PricedPhase price_phase(const PhaseRequest& request, Algorithm algorithm) {
  const Priced priced = price_algorithm(request, algorithm);
  return priced.longest < std::numeric_limits<double>::infinity() ? priced
                                                                  : price_automatic(request);
}

}  // namespace orrery::collective
