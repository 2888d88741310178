// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/event_queue.h"
#include "machine/topology/link_map.h"

namespace orrery::network {

/// Identifies a transfer from start() until it has finished.
using TransferId = std::uint32_t;

/// Transports ask these of a model of messages on links, as its member `kTraits`
/// (simulate/message_transport.h).
struct LinksTraits {
  bool alike = false;  ///< what is alike shares alike, so that one may stand for others
  /// Says whether settle() must come last: after it nothing may be pushed for before what it has
  /// pushed.
  bool looks_ahead = false;
  bool links_change = false;  ///< scale() and reroute(), for faults
  bool repeats = false;       ///< describe(), is_stale() and shift(), for states that come again
  /// Says whether messages that leave in order must be held back, since they would share a link.
  /// Ports and routers send first what came first.
  bool holds = false;
  bool tells_leaving = false;  ///< an event of kDrained: the last byte has left
  bool by_byte = false;        ///< a message costs work by its bytes: passes(), passed(), events()
};

/// Network model "analytical": latency + serialisation, with link occupancy.
///
///   A link is wanted for load = sum of the weights of the transfers on it. Where that is more than
///   1 they all move so much slower, each in proportion to what it wants; a transfer moves at
///       1 / max(1, max over its links of load)
///   of its unshared rate; `latency` follows its last byte and occupies nothing:
///       alone: finish = start + serialisation + latency
///
/// The rate of the most wanted link holds for the whole transfer, and what it leaves unused on the
/// others is not given away (max-min fairness is the flow-level model's job).
///
/// Rates change once per instant, in settle(), and weights count in units of 2^-24, so that the
/// order of simultaneous events leaves no trace, not even in the last bit of a sum.
///
/// Interface shared by all network models (a compile-time interface: a transport is instantiated
/// per model):
///   id   = start(now, serialisation, latency, links)
///   done = handle(event): true when the event finishes transfer event.subject
///   settle(queue): called when an instant is over; pushes the model's events
/// Events that the model pushes have kind kFirstEvent or above.
class AnalyticalNetwork {
 public:
  static constexpr std::uint32_t kFirstEvent = 100;
  static constexpr std::uint32_t kFinish = kFirstEvent;
  static constexpr std::uint32_t kRelease = kFirstEvent + 1;

  explicit AnalyticalNetwork(std::size_t links) : on_link_(links), load_(links) {}

  /// `links` must stay valid until the transfer finishes; each link occurs once in it.
  TransferId start(Time now, Time serialisation, Time latency,
                   std::span<const topology::LinkUse> links);
  bool handle(const engine::EventQueue::Event& event);
  void settle(engine::EventQueue& queue);

  /// Appends everything that decides what happens to the transfers of `live` (their ids, each
  /// once), as numbers that are equal for two states that differ in time only. Requires settled
  /// rates.
  void describe(Time now, std::span<const TransferId> live, std::vector<std::int64_t>& state) const;
  /// Returns whether an event does anything.
  bool is_stale(const engine::EventQueue::Event& event) const {
    return event.generation != transfers_[event.subject].generation;
  }
  /// Moves all that is in flight on in time.
  void shift(Time by);

 private:
  struct Transfer {
    Time serialisation{0};
    double remaining = 0;  ///< picoseconds of unshared serialisation left at `since`
    double slowdown = 0;   ///< 0: not in flight yet
    Time since{0};
    Time serialised{0};  ///< when the last byte leaves, at the present rate
    Time latency{0};
    std::uint32_t generation = 0;
    bool occupies = false;
    bool announced = false;  ///< a release event is pending
    bool touched = false;    ///< is in touched_
    std::span<const topology::LinkUse> links;
  };

  TransferId allocate();
  double slowdown_of(const Transfer& transfer) const;
  bool shares_a_link(const Transfer& transfer) const;
  void touch(TransferId id);
  void touch_neighbours(TransferId id);
  void update_rate(TransferId id, engine::EventQueue& queue);
  void leave_links(TransferId id);
  void drop_serialised(topology::LinkId link, Time now);

  std::vector<Transfer> transfers_;
  std::vector<TransferId> free_;
  std::vector<std::vector<TransferId>> on_link_;
  std::vector<double> load_;         ///< by link: sum of the counted weights on it
  std::vector<TransferId> touched_;  ///< in this instant: their rates may change
};

}  // namespace orrery::network
