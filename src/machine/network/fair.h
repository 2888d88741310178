// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"

namespace orrery::network {

/// Says how a flow shares besides its route.
struct FlowTerms {
  double weight = 1;  ///< its rate is weight times that of a flow of weight 1 beside it; above 0
  Bandwidth cap{std::numeric_limits<double>::infinity()};  ///< it never goes faster; above 0
};

/// Network model "fair": messages as fluid flows, links shared by weighted max-min fairness.
///
///   Rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 2nd
///   ed., 6.5.2): the level of all flows grows alike, the rate of each is weight * level; flows
///   through a link that is full, or at their cap, keep theirs, the others grow on.
///   arrival = time at which the last byte has left + sum of the latencies of the route
///
/// Flows may pass one link at bandwidths of their own (software that does not get more out of it; a
/// flow that sends only a share f of its bytes over it: bandwidth / f): a link is full when the
/// shares rate / bandwidth of its flows make 1.
///
/// Rates hold until a flow begins or ends, and only what that can change is computed again, once
/// per instant in settle(): of the flows that share links with it, directly or through others,
/// those of at least the level of what has ended, and of at least the smallest equal share on the
/// route of what begins. Up to that level progressive filling goes as before. Exact; ignores
/// packets, the time that congestion control needs to find the rates.
///
/// Interface as AnalyticalNetwork.
class FairNetwork {
 public:
  static constexpr LinksTraits kTraits{
      .alike = true, .links_change = true, .repeats = true, .holds = true, .tells_leaving = true};
  static constexpr std::uint32_t kFirstEvent = 120;
  static constexpr std::uint32_t kDrained = kFirstEvent;
  static constexpr std::uint32_t kArrive = kFirstEvent + 1;

  explicit FairNetwork(std::size_t links) : links_(links) {}

  /// Starts a message at queue.now(). `route` must stay valid until it arrives; empty: it arrives
  /// at once.
  TransferId start(Bytes bytes, std::span<const topology::Hop> route, engine::EventQueue& queue,
                   const FlowTerms& terms = {});
  /// True when the last byte of message event.subject has arrived; its id is then free again.
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue);
  /// Returns whether an event does nothing; one of kDrained that does says that the last byte has
  /// left.
  bool is_stale(const engine::EventQueue::Event& event) const {
    return event.kind == kDrained && event.generation != flows_[event.subject].generation;
  }
  void settle(engine::EventQueue& queue);
  /// Sets the flow's cap from now on, which is above 0.
  void limit(TransferId id, Bandwidth cap);
  /// The link has `factor` of its bandwidth from now on; 0: its flows wait.
  void scale(topology::LinkId link, double factor);
  /// Sends what is left of message `id` over another route from now on, which must stay valid until
  /// it arrives; returns it. Nothing when its last byte has left.
  std::optional<Bytes> reroute(TransferId id, std::span<const topology::Hop> route,
                               engine::EventQueue& queue);

  /// Appends everything that decides how the flows of `live` go on, in this order, as numbers that
  /// are equal for two states that differ in time only. Requires settled rates.
  void describe(Time now, std::span<const TransferId> live, std::vector<std::int64_t>& state) const;
  /// Moves all that is in flight on in time.
  void shift(Time by);

  /// Returns for how long the link would have been held by what has passed it alone.
  Time busy(topology::LinkId link) const { return links_[link].busy; }
  /// Returns the rate of a flow in flight, as the last settle() has left it.
  Bandwidth rate(TransferId id) const { return Bandwidth(flows_[id].rate); }
  /// Returns the number of flows whose rate was computed, all settle() together: what sharing has
  /// cost.
  std::uint64_t solved() const { return solved_; }

 private:
  struct Flow {
    std::span<const topology::Hop> route;
    double left = 0;  ///< bytes at `since`
    double rate = 0;  ///< bytes per second
    double level = 0;
    FlowTerms terms;
    Time since{0};
    Time arrival{0};           ///< once its last byte has left
    std::uint32_t places = 0;  ///< first of its route's in places_
    std::uint32_t generation = 0;
    bool in_part = false;  ///< of the network that settle() computes
    bool fixed = false;
  };
  /// A flow that passes a link, and over which of its hops.
  struct Passing {
    TransferId flow = 0;
    std::uint32_t hop = 0;
  };
  struct Link {
    std::vector<Passing> flows;
    Time busy{0};
    double bandwidth = 0;  ///< that the first of its flows passes it with
    double factor = 1;
    double total = 0;        ///< of it, per level of all its flows
    double spare = 0;        ///< of it, not yet given away
    double wanted = 0;       ///< of it, per level of the flows without a rate
    std::uint32_t open = 0;  ///< flows without a rate
    bool in_part = false;
    /// The levels of all flows of the link in ascending order while `ranked`, and of those that
    /// have left since, a heap: so the highest is known without a look at all of them.
    std::vector<float> levels;
    std::vector<float> gone;
    bool ranked = false;
    std::uint8_t idle = 0;  ///< looks at all its flows since it had one to compute
  };
  /// A level at which a link may be full, or a flow (`flow`) at its cap.
  struct Mark {
    double level = 0;
    std::uint32_t of = 0;
    bool flow = false;
  };

  void touch(topology::LinkId link);
  void take_places(Flow& flow);
  void enter_links(TransferId id, Bytes bytes);
  void leave_links(TransferId id);
  double least_equal_share(const Flow& flow) const;
  void collect_part();
  void collect_link(topology::LinkId id);
  /// Returns a level that is not less than that of any of the link's flows. Requires `ranked`.
  static double highest_level(Link& link);
  void rank(Link& link) const;
  void fill();
  void fix(TransferId id, double level);
  void update(TransferId id, engine::EventQueue& queue);
  /// Returns the flow's share of the link's bandwidth, per level of the flow.
  static double weight(const Link& link, const Flow& flow, const topology::Hop& hop) {
    return link.bandwidth == hop.bandwidth.value()
               ? flow.terms.weight
               : flow.terms.weight * link.bandwidth / hop.bandwidth.value();
  }

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<TransferId> free_;
  std::vector<std::uint32_t> places_;  ///< of each hop of each flow among the flows of its link
  std::vector<std::vector<std::uint32_t>> free_places_;  ///< by length of the route
  std::vector<topology::LinkId> part_links_;
  std::vector<TransferId> part_flows_;
  std::vector<TransferId> fresh_;
  std::vector<Mark> marks_;
  double threshold_ =
      std::numeric_limits<double>::infinity();  ///< level that changes reach down to
  std::uint64_t solved_ = 0;
};

}  // namespace orrery::network
