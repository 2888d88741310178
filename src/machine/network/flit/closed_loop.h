// SPDX-License-Identifier: Apache-2.0
/// Messages and work that wait for one another, on a network of routers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "machine/network/flit/engine.h"
#include "machine/network/flit/open_loop.h"

namespace orrery::flit {

/// Says how a message becomes packets (fabric.h: message_flits).
struct Packaging {
  Bytes flit{50};
  Bytes packet{256};  ///< of payload, behind a head flit
};

/// A message from node to node, or work of a node that sends nothing.
struct LoopEvent {
  static constexpr Cycle kMessage = -1;
  std::uint32_t source = 0;
  std::uint32_t target = 0;  ///< of a message
  Bytes bytes{0};
  Cycle work = kMessage;             ///< cycles of work
  std::vector<std::uint32_t> after;  ///< events that must be done before; each stands earlier
};

/// Holds events in an order in which whatever is waited for stands before.
using LoopSchedule = std::vector<LoopEvent>;

struct LoopResult {
  std::vector<Cycle> ends;  ///< by event
  Cycle end = 0;            ///< of the last
  std::uint64_t flit_hops = 0;
  Cycle cycles_simulated = 0;  ///< cycle by cycle; the rest by closed form
  std::uint64_t alone = 0;     ///< messages that took the closed form
  std::string deadlock;        ///< why the rest never ends; empty: it does
};

/// Runs all events as soon as what they wait for is done.
///
///   message  starts in the cycle in which the last that it waits for ends, ends in the cycle after
///            its tail's arrival; messages of a node leave one after the other, packet by packet
///   work     ends so many cycles after its start; what waits for it starts one cycle later
///
/// Fast path: while every message is alone on all links that it may take, its end is alone()
/// (fabric.h) and no cycle is simulated. When one meets another, the time since the network was
/// last idle is simulated from its start, and what follows until it is idle again. An idle network
/// forgets its arbiters' turns and draws anew, so `options.skip` false (every message flit by flit)
/// gives the same ends.
/// Requires: nodes of the graph, `after` as stated; else undefined. Settings in range
/// (experiment.h).
/// Source: the cycle rules are those of the public artifact of Chimera (ISCA 2025).
LoopResult run_closed_loop(const Routing& routing, const RouterSettings& router,
                           const Packaging& packaging, const LoopSchedule& schedule,
                           std::uint64_t seed, const RunOptions& options = {});

struct Batch {
  int packets = 1000;   ///< of every node
  int outstanding = 0;  ///< of a node, in flight at once; 0: any number
  Bytes each{0};        ///< payload
};

/// Every node sends its packets by the pattern; packet i as soon as its packet i - outstanding has
/// arrived.
LoopSchedule batch_schedule(const Traffic& traffic, std::uint32_t nodes, const Batch& batch,
                            std::uint64_t seed);

}  // namespace orrery::flit
