// SPDX-License-Identifier: Apache-2.0
/// The network of the native semantics: messages on every link of all dimensions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "compat/astra/event.h"
#include "compat/astra/native.h"
#include "compat/astra/run.h"
#include "machine/network/fair.h"
#include "machine/network/fifo.h"
#include "machine/topology/link_map.h"

namespace orrery::astra {

/// A collective phase that the switch of a dimension does: every member sends `up` bytes, the
/// switch combines them, every member receives `down` bytes.
struct SwitchPhase {
  std::uint64_t id = 0;  ///< the same for all members, another for phases under way
  std::uint32_t members = 1;
  int dimension = 0;
  Bytes up{0};
  Bytes down{0};
};

/// Interface as in network.h. `Links` is FifoNetwork or FairNetwork.
///
/// Folded (one NPU stands for all, because all do the same at the same times): every NPU's link of
/// a dimension and port is that of NPU 0, so what others send over their links to it is what it
/// sends itself. fold.h says when this is exact.
template <class Links>
class NativeNetwork {
 public:
  static constexpr bool kStateless = false;
  static constexpr bool kCombines = true;

  NativeNetwork(const NativeNetworkOptions& options, bool folded)
      : map_(options.dimensions, options.reach),
        folded_(folded),
        links_(make_links(folded ? map_.classes() : map_.links(), options.forwarding)) {}

  void send(Events& events, std::int64_t from, std::int64_t to, Bytes bytes, const Event& arrival) {
    const std::uint32_t flight = new_flight(arrival, kAlone);
    map_.route(from, to, flights_[flight].route);
    fly(events, bytes, flight);
  }

  /// The switch combines when the last member joins; all have the result when every link of the
  /// phase is through with it. Both directions run at once (cut-through in the switch).
  void join(Events& events, std::int64_t from, const SwitchPhase& phase, const Event& arrival) {
    const std::uint32_t index = gathering(phase);
    Gathering& all = gatherings_[index];
    all.members.emplace_back(from, arrival);
    if (--all.missing == 0) {
      all.missing = phase.members;
      for (std::size_t i = 0; i < gatherings_[index].members.size(); ++i) {
        depart(events, gatherings_[index].members[i].first, phase, index);
      }
    }
  }

  /// Of an event of kind hop; the arrival when that was the last of its message.
  std::optional<Event> advance(Events& events, const Event& event) {
    switch (event.phase) {
      case kArrived:
        return land(events, event.subject);
      case kNext:
        step(events, event.subject);
        return std::nullopt;
      case kDrained:
        drain(events, event);
        return std::nullopt;
      default:
        settle(events);
        return std::nullopt;
    }
  }

  /// By dimension. Dimensions of one nic are counted in the innermost.
  std::vector<DimensionUse> use() const {
    std::vector<DimensionUse> dimensions(map_.dimensions().size());
    const std::size_t count = folded_ ? map_.classes() : map_.links();
    for (LinkId link = 0; link < count; ++link) {
      const int d = folded_ ? map_.dimension_of_class(link) : map_.dimension_of(link);
      DimensionUse& use = dimensions[static_cast<std::size_t>(d)];
      use.busiest = std::max(use.busiest, links_.busy(link));
      use.total += to_seconds(links_.busy(link));
      ++use.links;
    }
    return dimensions;
  }

 private:
  static constexpr bool kFifo = std::is_same_v<Links, FifoNetwork>;
  static constexpr std::uint32_t kAlone = 0xffffffff;
  /// Event::phase of hops. Event::step of kDrained is the generation.
  enum : std::uint16_t { kNext, kArrived, kDrained, kSettle };

  struct Flight {
    std::vector<Hop> route;
    Event arrival;
    std::uint32_t gathering = kAlone;
  };
  struct Gathering {
    std::uint64_t id = 0;
    std::uint32_t missing = 0;  ///< members that have not joined, then that are not through
    std::vector<std::pair<std::int64_t, Event>> members;
  };

  static Links make_links(std::size_t count, Forwarding forwarding) {
    if constexpr (kFifo) {
      return FifoNetwork(count, forwarding);
    } else {
      return FairNetwork(count);
    }
  }

  std::uint32_t new_flight(const Event& arrival, std::uint32_t gathering) {
    if (unused_flights_.empty()) {
      unused_flights_.push_back(static_cast<std::uint32_t>(flights_.size()));
      flights_.emplace_back();
    }
    const std::uint32_t flight = unused_flights_.back();
    unused_flights_.pop_back();
    flights_[flight].route.clear();
    flights_[flight].arrival = arrival;
    flights_[flight].gathering = gathering;
    return flight;
  }

  void fly(Events& events, Bytes bytes, std::uint32_t flight) {
    if (folded_) {
      for (Hop& hop : flights_[flight].route) {
        hop.link = map_.class_of(hop.link);
      }
    }
    const TransferId id = links_.add(events.now(), bytes, flights_[flight].route);
    if (flight_of_.size() <= id) {
      flight_of_.resize(std::size_t{id} + 1);
    }
    flight_of_[id] = flight;
    step(events, id);
  }

  void step(Events& events, TransferId id) {
    if constexpr (kFifo) {
      const FifoNetwork::Step next = links_.step(events.now(), id);
      push(events, next.when, id, next.arrives ? kArrived : kNext);
    } else if (flights_[flight_of_[id]].route.empty()) {
      push(events, events.now(), id, kArrived);
    } else {
      ask_to_settle(events);
    }
  }

  /// After everything else of this instant that is known by now.
  void ask_to_settle(Events& events) {
    if (!settling_) {
      settling_ = true;
      push(events, events.now(), 0, kSettle);
    }
  }
  void settle(Events& events) {
    if constexpr (!kFifo) {
      settling_ = false;
      drained_.clear();
      links_.settle(events.now(), drained_);
      for (const FairNetwork::Drained& next : drained_) {
        events.push(next.when, {next.id, next.generation, kDrained, Event::Kind::hop});
      }
    }
  }
  void drain(Events& events, const Event& event) {
    if constexpr (!kFifo) {
      if (const auto arrival = links_.drain(events.now(), event.subject, event.step)) {
        push(events, *arrival, event.subject, kArrived);
        ask_to_settle(events);
      }
    }
  }

  std::optional<Event> land(Events& events, TransferId id) {
    const Flight& flight = flights_[flight_of_[id]];
    links_.remove(id);
    unused_flights_.push_back(flight_of_[id]);
    if (flight.gathering == kAlone) {
      return flight.arrival;
    }
    Gathering& all = gatherings_[flight.gathering];
    if (--all.missing == 0) {
      for (const auto& [member, arrival] : all.members) {
        events.push(events.now(), arrival);
      }
      gathering_of_.erase(all.id);
      unused_gatherings_.push_back(flight.gathering);
    }
    return std::nullopt;
  }

  std::uint32_t gathering(const SwitchPhase& phase) {
    const auto [found, fresh] = gathering_of_.try_emplace(phase.id, 0);
    if (fresh) {
      if (unused_gatherings_.empty()) {
        unused_gatherings_.push_back(static_cast<std::uint32_t>(gatherings_.size()));
        gatherings_.emplace_back();
      }
      found->second = unused_gatherings_.back();
      unused_gatherings_.pop_back();
      Gathering& all = gatherings_[found->second];
      all.id = phase.id;
      all.missing = phase.members;
      all.members.clear();
    }
    return found->second;
  }

  /// One member's bytes: up its own link and down its own link.
  void depart(Events& events, std::int64_t member, const SwitchPhase& phase, std::uint32_t index) {
    const std::uint32_t flight = new_flight(gatherings_[index].members.front().second, index);
    std::vector<Hop>& route = flights_[flight].route;
    map_.switch_route(member, phase.dimension, route);
    const Bytes most = std::max(phase.up, phase.down);
    if constexpr (kFifo) {
      // One size for the links up and down: the one with fewer bytes counts as so much faster.
      for (std::size_t i = 0; i < route.size(); ++i) {
        const Bytes bytes = 2 * i < route.size() ? phase.up : phase.down;
        route[i].bandwidth = Bandwidth(route[i].bandwidth.value() * (most / bytes));
      }
    }
    fly(events, most, flight);
  }

  static void push(Events& events, Time when, TransferId id, std::uint16_t what) {
    events.push(when, {id, 0, what, Event::Kind::hop});
  }

  LinkMap map_;
  bool folded_;
  Links links_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> unused_flights_;
  std::vector<std::uint32_t> flight_of_;  ///< by TransferId
  std::map<std::uint64_t, std::uint32_t> gathering_of_;
  std::vector<Gathering> gatherings_;
  std::vector<std::uint32_t> unused_gatherings_;
  std::vector<FairNetwork::Drained> drained_;
  bool settling_ = false;
};

}  // namespace orrery::astra
