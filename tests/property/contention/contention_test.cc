// SPDX-License-Identifier: Apache-2.0
// One collective of every group of a machine at once: what the phases' links make of it (ports)
// stays within 5 % of every message of every group on the same links, on any dimensions and at any
// stride; and a group alone takes its closed form.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "../../collective/message_time.h"
#include "collective/occupancy.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"

namespace orrery {
namespace {

using testing::DeviceGroups;
using testing::groups_of;
using testing::message_time;
using testing::MessageCuts;
using Kind = graph::CollectiveKind;
using Algorithm = collective::CollectiveAlgorithm;

constexpr Bytes kSize{8'000'000'000};  // latency hardly counts

struct Case {
  machine::Machine machine;
  std::int64_t stride = 1;
  std::int64_t count = 2;
  Kind kind = Kind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
};

std::string describe(const Case& c) {
  std::string text = std::string(name_of(c.kind)) + " " + std::string(name_of(c.algorithm)) +
                     " of " + std::to_string(c.count) + " stride " + std::to_string(c.stride);
  for (const topology::NetworkDimension& d : c.machine.network) {
    text += " | " + std::string(name_of(d.kind)) + " " + std::to_string(d.size) + " " + d.nic +
            (d.through.empty() ? "" : " through") +
            (d.node_bandwidth > Bandwidth(0) ? " node" : "");
  }
  return text;
}

/// Returns when the last of the groups has done the phase, on links that groups share.
Time on_ports(const collective::CollectivePhase& phase, const DeviceGroups& groups,
              const topology::LinkMap& map) {
  std::vector<std::int64_t> devices(static_cast<std::size_t>(map.devices()));
  std::iota(devices.begin(), devices.end(), 0);
  const collective::Occupancy occupancy(map, devices);
  std::vector<std::vector<topology::LinkUse>> links;
  for (std::vector<std::int64_t> members : groups) {
    std::sort(members.begin(), members.end());
    links.push_back(occupancy.phase(phase, members));
  }
  network::AnalyticalNetwork network(map.links());
  engine::EventQueue queue;
  for (const std::vector<topology::LinkUse>& uses : links) {
    network.start(queue.now(), phase.serialisation, phase.latency, uses);
  }
  network.settle(queue);
  Time end{0};
  while (!queue.empty()) {
    if (network.handle(queue.pop())) {
      end = queue.now();
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  return end;
}

/// Neither the filling of pipelines nor the order in which whole messages take a link should count.
MessageCuts cuts_of(const collective::CollectivePhase& phase) {
  const bool pipelined = phase.algorithm == Algorithm::double_binary_tree ||
                         (phase.algorithm == Algorithm::ring && phase.kind == Kind::broadcast);
  const bool stepwise = phase.algorithm == Algorithm::halving_doubling ||
                        phase.algorithm == Algorithm::pairwise;  // slices would run ahead
  const bool one_message = phase.kind == Kind::send_recv;
  return pipelined ? MessageCuts{.chunks = 512}
                   : MessageCuts{.slices = stepwise      ? 1
                                           : one_message ? 32
                                                         : 8};
}

/// Returns the phases; nothing where the algorithm has no messages.
std::optional<std::vector<collective::CollectivePhase>> plan_of(const Case& c) {
  auto phases = collective::plan_messages(
      c.kind, kSize, collective::extents_of(c.stride, c.count, c.machine), c.algorithm, c.machine);
  return collective::check_messages(phases, c.machine) ? std::optional(std::move(phases))
                                                       : std::nullopt;
}

struct Times {
  Time ports{0};
  Time messages{0};
};

/// Returns the times of all groups, or of the first alone. Nothing where the algorithm has no
/// messages.
std::optional<Times> times_of(const Case& c, bool all) {
  const auto phases = plan_of(c);
  if (!phases) {
    return std::nullopt;
  }
  const topology::LinkMap map(c.machine.network);
  Times times;
  for (const collective::CollectivePhase& phase : *phases) {
    DeviceGroups groups = groups_of(phase, c.machine);
    groups.resize(all ? groups.size() : 1);
    times.ports += on_ports(phase, groups, map);
    times.messages += message_time(phase, groups, c.machine, cuts_of(phase));
  }
  return times;
}

/// Returns how far the two may be apart, 0: not compared.
double within(const Case& c) {
  const bool lines = std::any_of(c.machine.network.begin(), c.machine.network.end(), [](auto& d) {
    return d.kind == topology::DimensionKind::ring || d.kind == topology::DimensionKind::mesh;
  });
  const bool complete =
      std::any_of(c.machine.network.begin(), c.machine.network.end(),
                  [](auto& d) { return d.kind == topology::DimensionKind::fully_connected; });
  const bool exchange = c.kind == Kind::all_to_all || c.kind == Kind::send_recv;
  // A step of pairwise over several dimensions that are not all switches crosses some at once and
  // some in turn.
  if (c.algorithm == Algorithm::pairwise && c.machine.network.size() > 1 && (lines || complete)) {
    return 0;
  }
  // Messages of a step do not wait for the slowest of the step before, as the closed form has it:
  // steps overlap, or one's stragglers are in the way of the next.
  if (lines && c.algorithm == Algorithm::halving_doubling) {
    return 0.15;
  }
  if (lines && c.algorithm == Algorithm::pairwise) {
    return 0.07;
  }
  // Where a node's devices share adapters, a step of one message waits for those of the others, and
  // nothing fills its own port meanwhile; many messages at once come within 10 %.
  const bool adapters = std::any_of(c.machine.network.begin(), c.machine.network.end(),
                                    [](auto& d) { return d.node_bandwidth > Bandwidth(0); });
  if (adapters && exchange) {
    return c.algorithm == Algorithm::pairwise ? 0 : 0.1;
  }
  if (adapters && c.algorithm == Algorithm::halving_doubling) {
    return 0;
  }
  // The chains of a broadcast's rings all begin at one member, and wait for each other there.
  if (c.kind == Kind::broadcast && c.algorithm == Algorithm::ring && c.machine.network.size() > 1) {
    return 0;
  }
  // Even groups of 8 and more have n-1 Hamiltonian cycles, but complete_cycles() finds n-2.
  if (complete && !exchange && c.algorithm != Algorithm::direct && c.count % 2 == 0 &&
      c.count >= 8) {
    return 0;
  }
  return 0.05;
}

void check(const Case& c) {
  const auto phases = plan_of(c);
  if (!phases || within(c) == 0) {
    return;
  }
  const auto alone = times_of(c, false);
  const auto all = times_of(c, true);
  const double one = alone->ports / alone->messages;
  const double every = all->ports / all->messages;
  EXPECT_EQ(alone->ports, collective::total_time(*phases)) << describe(c);
  EXPECT_NEAR(one, 1, within(c)) << describe(c) << " alone";
  EXPECT_NEAR(every, 1, within(c)) << describe(c) << " all";
}

topology::NetworkDimension dimension_with(topology::DimensionKind kind, std::int64_t size,
                                          Bandwidth bandwidth) {
  topology::NetworkDimension result;
  result.name = std::string(name_of(kind));
  result.kind = kind;
  result.size = size;
  result.bandwidth = bandwidth;
  result.latency = 100_ns;
  return result;
}

constexpr std::pair<Kind, Algorithm> kPairs[] = {{Kind::all_reduce, Algorithm::ring},
                                                 {Kind::all_gather, Algorithm::ring},
                                                 {Kind::all_to_all, Algorithm::direct},
                                                 {Kind::all_to_all, Algorithm::pairwise},
                                                 {Kind::send_recv, Algorithm::direct},
                                                 {Kind::all_reduce, Algorithm::direct},
                                                 {Kind::all_gather, Algorithm::halving_doubling},
                                                 {Kind::all_reduce, Algorithm::double_binary_tree},
                                                 {Kind::broadcast, Algorithm::ring},
                                                 {Kind::broadcast, Algorithm::direct},
                                                 {Kind::all_reduce, Algorithm::hierarchical}};

/// Every stride and count that tile the devices and lie on whole extents.
template <class Visit>
void each_group(const machine::Machine& machine, const Visit& visit) {
  std::int64_t devices = 1;
  for (const topology::NetworkDimension& d : machine.network) {
    devices *= d.size;
  }
  for (std::int64_t stride = 1; stride < devices; ++stride) {
    for (std::int64_t count = 2; stride * count <= devices; ++count) {
      const std::vector<collective::Extent> extents =
          collective::extents_of(stride, count, machine);
      std::int64_t unit = extents.front().stride;
      for (int d = 0; d < extents.front().dimension; ++d) {
        unit *= machine.network[static_cast<std::size_t>(d)].size;
      }
      // Others lie flat in the outermost dimension, wherever they are.
      if (devices % (stride * count) == 0 && unit == stride) {
        visit(stride, count);
      }
    }
  }
}

constexpr topology::DimensionKind kKinds[] = {
    topology::DimensionKind::switched, topology::DimensionKind::fully_connected,
    topology::DimensionKind::ring, topology::DimensionKind::mesh};

/// Every collective of every group on the case's machine.
void check_all(Case c) {
  each_group(c.machine, [&](std::int64_t stride, std::int64_t count) {
    for (const auto& [collective, algorithm] : kPairs) {
      c.stride = stride;
      c.count = count;
      c.kind = collective;
      c.algorithm = algorithm;
      check(c);
    }
  });
}

TEST(Contention, EveryGroupOfEveryStrideOfOneDimension) {
  for (const topology::DimensionKind kind : kKinds) {
    for (const std::int64_t size : {2, 3, 4, 5, 6, 8, 12, 16}) {
      Case c;
      c.machine.network = {dimension_with(kind, size, 100_GBps)};
      check_all(c);
    }
  }
}

TEST(Contention, EveryGroupOfEveryStrideOfTwoDimensions) {
  for (const topology::DimensionKind inner : kKinds) {
    for (const topology::DimensionKind outer : kKinds) {
      for (const auto& [inside, outside] : {std::pair{2, 3}, {3, 2}, {4, 4}, {3, 5}}) {
        Case c;
        c.machine.network = {dimension_with(inner, inside, 100_GBps),
                             dimension_with(outer, outside, 40_GBps)};
        c.machine.network[1].name = "outer";
        // A message passes a port in one piece, whatever slower links it goes on to: where the port
        // is not the link itself, the messages of a phase are too few to fill both.
        const bool switches = inner == topology::DimensionKind::switched && outer == inner;
        for (const bool nic : {false, true}) {
          if (nic && !switches) {
            continue;
          }
          c.machine.network[0].nic = c.machine.network[1].nic = nic ? "nic" : "";
          check_all(c);
        }
      }
    }
  }
}

TEST(Contention, EveryGroupThroughInnerPortsAndSharedAdapters) {
  // 30 GB/s inside, 40 outside behind the same 30; the devices of a node share 60 there.
  for (const auto& [inside, outside] : {std::pair{2, 3}, {4, 4}, {3, 5}}) {
    for (const bool shares : {false, true}) {
      Case c;
      c.machine.network = {dimension_with(topology::DimensionKind::switched, inside, 30_GBps),
                           dimension_with(topology::DimensionKind::switched, outside, 40_GBps)};
      c.machine.network[1].name = "outer";
      c.machine.network[1].through = c.machine.network[0].name;
      c.machine.network[1].node_bandwidth = shares ? 60_GBps : Bandwidth(0);
      check_all(c);
    }
  }
}

}  // namespace
}  // namespace orrery
