// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machine/network/packets/credits.h"
#include "machine/network/packets/delayed.h"
#include "machine/network/packets/fabric.h"
#include "machine/network/packets/paced.h"
#include "machine/network/packets/steady.h"

namespace orrery::packets {

/// A PacketNetwork runs the packets of packet.h: it hands every event to the fabric or to the
/// protocol's senders and receivers. Flows that are known run in parts (run()), messages come one
/// by one (messages.cc). Private to the folder.
class PacketNetwork {
 public:
  /// `graph` and `flows` must outlive it.
  PacketNetwork(const topology::LinkGraph& graph, const std::vector<network::FlowRequest>& flows,
                const network::PacketOptions& options);

  const Rules& rules() const { return fabric_.rules(); }
  const Routes& routes() const { return fabric_.routes(); }

  /// Adds the links of path `id` of a flow; ids in order from 0.
  void add_path(std::size_t flow, const std::vector<std::int32_t>& links);
  /// Adds the route of the flow's acknowledgements, where they are packets among others; without it
  /// over the cables of path 0.
  void add_return_route(std::size_t flow, const std::vector<std::int32_t>& links);
  /// Some acknowledgements would have no route.
  bool needs_return_route() const {
    return (rules().is(network::Protocol::hpcc) || rules().is(network::Protocol::swift)) &&
           routes().lack_way_back();
  }
  PacketRun run();
  /// Tells `progress` of run(): `passes` is how often packets will pass links, if none is sent
  /// twice.
  void tell(PacketProgress progress, double passes) {
    progress_ = std::move(progress);
    bytes_ = passes * static_cast<double>(rules().wire());
  }
  /// Returns, after run(), whether every flow has ended.
  bool all_ended() const { return ended_ == flows_.size(); }

  // Messages one by one, instead of run(): they begin at given times, in no part, and nothing is
  // skipped.
  /// Lays a route, whose rates may be below those of its links, and returns its place.
  std::uint32_t lay(std::span<const topology::Hop> hops) { return fabric_.routes().lay(hops); }
  /// Begins at `when`, not before what advance() has handled; its number. Requires routes of a link
  /// or more. The course's routes are packets' in turn.
  std::uint32_t send(Time when, Bytes bytes, std::int32_t target, const Course& course);
  /// Handles what happens before `until`, up to the first message of which all has come at its
  /// receiver: that one. clock() is then when.
  std::optional<std::uint32_t> advance(Time until);
  /// Returns the time of the last event handled.
  Time clock() const { return fabric_.now(); }
  std::uint64_t events() const { return events_; }

 private:
  /// Returns the parts of flows: those that share no port and no receiver, directly or through
  /// others, are of different parts; each in the order of its starts. The parts run one after the
  /// other, each from time 0.
  std::vector<std::vector<std::uint32_t>> parts();
  void join_ports(std::vector<std::uint32_t>& parents, const Stream& stream,
                  std::uint32_t anchor) const;
  void run_part(const std::vector<std::uint32_t>& part);
  void prepare(std::uint32_t f);
  /// Returns when the next flow of the part begins; Time::max(): all have.
  Time next_start() const;
  void push_start();
  void begin_all();
  void begin(std::uint32_t f);
  /// The sender has the last acknowledgement.
  void end(std::uint32_t f);

  void handle(const engine::CalendarQueue::Event& event);
  /// Handles timers of senders' clocks and of windows.
  void handle_timer(const engine::CalendarQueue::Event& event);
  void finish_sending(std::uint32_t port);
  void deliver(std::uint32_t id);
  void take_ack(std::uint32_t id);
  void acknowledge(std::uint32_t f);

  static bool concerns_flow(const engine::CalendarQueue::Event& event);
  void forget_gone();
  void forget(std::uint32_t f);
  void came_whole(std::uint32_t f);

  const std::vector<network::FlowRequest>& flows_;
  Fabric fabric_;
  Credits credits_;
  Paced paced_;
  Delayed delayed_;
  SteadyPhases steady_;
  std::vector<Time> finish_;         ///< by flow
  std::vector<std::uint32_t> part_;  ///< flows that run now
  std::size_t begun_ = 0;            ///< how many of them have
  std::size_t ended_ = 0;            ///< of all
  std::uint32_t start_turn_ = 0;     ///< generation of the next start
  std::uint64_t events_ = 0;
  PacketProgress progress_;
  double bytes_ = 0;  ///< that links will have carried
  // of messages
  bool by_message_ = false;
  bool stuck_ = false;                  ///< pauses wait for each other: no packet will ever move
  Time moved_{0};                       ///< when a packet last left a port, or a message began
  std::optional<std::uint32_t> whole_;  ///< the message of which all has just come
};

}  // namespace orrery::packets
