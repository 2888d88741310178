// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"
#include "machine/network/flit/engine.h"
#include "machine/network/flit/fabric.h"
#include "machine/topology/link_map.h"

namespace orrery::flit {

/// Network model "flit": messages as packets of flits through virtual-channel routers (engine.h).
///
///   A link of the LinkMap is a channel with a router at its end; a message takes the links of its
///   route, packet after packet. Where all dimensions are switches the links to and from a switch
///   are those of its nodes, and the switch is the one router.
///   A slower link passes a flit every I cycles; a message leaves its node no faster than its
///   slowest link takes it, and messages of one port leave one after the other. A node takes flits
///   as fast as the last link.
///   Link latencies are the LinkMap's, in whole cycles; what a message's route says beyond their
///   sum (software, a protocol's step) comes after its arrival.
///
/// On a network of links every link is a channel, routes are those of its routing (one per
/// message), and what both directions share is one channel.
///
/// No deadlock: links are numbered, along each dimension or as order_links() does, and a message
/// takes a further class of VCs each time its route goes from a higher number to a lower one. So
/// whatever waits, waits for a higher (class, number).
///
/// Fast path: while every message is alone on the links of its route, which are equally fast, it
/// ends as alone() says and no cycle is simulated. The first that meets another, or whose route has
/// faster and slower links, has the time since the network was last idle
/// simulated flit by flit from its start, and what follows until it is idle again: equal to the
/// cycle. An idle network forgets its arbiters' turns.
///
/// Interface as AnalyticalNetwork.
class FlitNetwork {
 public:
  static constexpr network::LinksTraits kTraits{.looks_ahead = true};
  static constexpr std::uint32_t kFirstEvent = 140;
  static constexpr std::uint32_t kArrive = kFirstEvent;

  /// `map` must outlive the network. `shortcuts` false: every cycle is simulated.
  FlitNetwork(const topology::LinkMap& map, const FabricSettings& settings, bool shortcuts);
  FlitNetwork(const FlitNetwork&) = delete;
  FlitNetwork& operator=(const FlitNetwork&) = delete;

  /// Mistakes of the settings for this network, and classes that do not fit kMostVcs.
  Result<void> check() const;

  /// Starts a message at queue.now(). `route` must stay valid until it arrives; empty: it arrives
  /// at once.
  network::TransferId start(Bytes bytes, std::span<const topology::Hop> route,
                            engine::EventQueue& queue);
  /// True when the last byte of message event.subject has arrived; its id is then free again.
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue);
  void settle(engine::EventQueue& queue);

  std::uint64_t cycles_simulated() const { return cycles_; }
  Time cycle() const { return cycle_; }

 private:
  /// A LaidRoute has what a route's messages have in common.
  struct LaidRoute {
    std::vector<topology::Hop> hops;  ///< as given, to know it again
    std::uint32_t first = 0;          ///< of routes_
    std::uint32_t source = 0;         ///< nodes of the graph
    std::uint32_t target = 0;
    std::vector<std::uint32_t> ports;  ///< that it uses: channels, ejection, then injection
    Interval interval = kEveryCycle;   ///< of its slowest link
    bool is_even = true;               ///< all its links are as fast
    std::int64_t routers = 0;
    Cycle links = 0;
    Cycle wire = 0;  ///< of the sender's link (engine.h)
    Time after{0};   ///< beyond the links' latencies
  };
  struct Message {
    std::uint32_t route = 0;
    Bytes bytes{0};
    Bytes left{0};  ///< not yet offered
    Cycle start = 0;
    std::int64_t packets = 0;  ///< not yet arrived
    network::TransferId id = 0;
    bool told = false;  ///< its arrival was announced before the network was simulated
  };

  void read_links();
  void read_dimensions();
  void read_graph(const topology::LinkGraph& graph);
  int classes_needed() const;
  void build_graph();
  std::uint32_t number_of(std::span<const topology::Hop> route);
  LaidRoute lay_route(std::span<const topology::Hop> route);

  void begin_epoch(Cycle now);
  bool meets_another(const LaidRoute& laid, Cycle now) const;
  void simulate_from_start(Cycle now, engine::EventQueue& queue);
  void enqueue(std::uint32_t message);
  void offer_next(std::uint32_t source);
  void step_engine(Cycle limit, engine::EventQueue& queue);
  void tell(std::uint32_t message, Cycle cycle, engine::EventQueue& queue);
  Cycle first_cycle_at(Time time) const {
    return time.value() / cycle_.value() + (time.value() % cycle_.value() > 0 ? 1 : 0);
  }

  const topology::LinkMap& map_;
  FabricSettings settings_;
  bool shortcuts_;
  RouterSettings router_;
  bool has_closed_form_ = true;
  int classes_ = 1;
  Time cycle_{1};
  bool switches_only_ = false;
  RouterGraph graph_;
  std::vector<Candidate> candidates_;  ///< hops of all routes
  Routing routing_;
  bool by_link_ = false;              ///< nodes are the first and last links of routes
  double fastest_ = 0;                ///< of all links
  std::vector<Time> latency_;         ///< by link
  std::vector<std::int64_t> order_;   ///< by link: the number above; -1: no route uses it
  std::vector<std::int64_t> sender_;  ///< by link: device
  std::vector<std::int64_t> receiver_;
  std::vector<LaidRoute> routes_;
  std::unordered_map<const topology::Hop*, std::uint32_t> known_;  ///< only looked up

  // Since the network was last idle:
  std::vector<Message> messages_;
  std::vector<Cycle> busy_until_;  ///< by port: end of the message that uses it
  std::uint64_t in_flight_ = 0;
  bool simulating_ = false;
  Cycle origin_ = 0;  ///< cycle of the engine's cycle 0
  std::unique_ptr<Engine> engine_;
  std::vector<std::deque<std::uint32_t>> waiting_;  ///< messages by source

  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> announced_;  ///< by id: generation of its arrival; others are void
  std::vector<std::uint32_t> by_id_;      ///< message; kNone: one that takes no time
  std::vector<network::TransferId> free_;
  std::uint64_t cycles_ = 0;
};

}  // namespace orrery::flit
