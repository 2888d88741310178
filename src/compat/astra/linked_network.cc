// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/linked_network.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "compat/astra/machine.h"
#include "machine/network/fair.h"
#include "machine/network/fifo.h"
#include "machine/network/flit/network.h"
#include "machine/network/packets/packet_links.h"

namespace orrery::astra {
namespace {

constexpr std::int64_t kNanosecond = 1000;  // picoseconds

Time floor_nanoseconds(Time time) {
  return Time(time.value() / kNanosecond * kNanosecond);
}
Time ceil_nanoseconds(Time time) {
  return floor_nanoseconds(time + Time(kNanosecond - 1));
}

template <class Links>
class LinkedNetwork final : public Network {
 public:
  LinkedNetwork(topology::LinkMap map, std::uint64_t seed)
      : map_(std::move(map)), links_(make(seed)) {}

  const Event* advance(Events& events, const Event& /*event*/) override {
    follow(events);
    return nullptr;
  }

  void settle(Events& events) override {
    follow(events);
    if (kWhole && !events.empty()) {  // which move no further than what may begin others
      queue_.push(events.next_time(), kClock, 0);
    }
    links_.settle(queue_);
    if (!queue_.empty() && (woken_ <= events.now() || queue_.next_time() < woken_)) {
      woken_ = queue_.next_time();
      events.push(woken_, {0, 0, 0, Event::Kind::hop});
    }
  }

 private:
  static constexpr bool kFlits = std::is_same_v<Links, flit::FlitNetwork>;
  static constexpr bool kPackets = std::is_same_v<Links, packets::PacketLinks>;
  static constexpr bool kWhole = kFlits || kPackets;  ///< ends when it has passed the last link
  static constexpr std::uint32_t kClock = 0;
  static_assert(kClock < network::AnalyticalNetwork::kFirstEvent);

  struct Route {
    std::vector<topology::Hop> hops;
    Time last{0};  ///< latency of the last link, which occupies nothing: left out of `hops`
  };
  struct Sent {
    Event arrival;
    Time last{0};
  };

  Links make(std::uint64_t seed) const {
    if constexpr (kPackets) {
      return Links(map_, {.seed = seed});
    } else if constexpr (kFlits) {
      return Links(map_, flit::FabricSettings{}, true);
    } else {
      return Links(map_.links());
    }
  }

  void carry(Events& events, std::int64_t from, std::int64_t to, Bytes bytes,
             Event arrival) override {
    follow(events);
    const Route& route = route_between(from, to);
    const network::TransferId id = [&] {
      if constexpr (kPackets) {
        return links_.start({static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), bytes},
                            route.hops, queue_);
      } else {
        return links_.start(bytes, route.hops, queue_);
      }
    }();
    in_flight_.resize(std::max<std::size_t>(in_flight_.size(), id + 1));
    in_flight_[id] = {arrival, route.last};
  }

  /// Everything up to the run's instant; the clock is that instant's then.
  void follow(Events& events) {
    if (queue_.now() < events.now()) {
      queue_.push(events.now(), kClock, 0);
    }
    while (!queue_.empty() && queue_.next_time() <= events.now()) {
      const engine::EventQueue::Event event = queue_.pop();
      if (event.kind != kClock && links_.handle(event, queue_)) {
        arrive(events, in_flight_[event.subject]);
      }
    }
  }

  /// Returns a route that never moves: messages hold its hops.
  const Route& route_between(std::int64_t from, std::int64_t to) {
    const auto [found, fresh] = routes_.try_emplace(from * map_.devices() + to);
    Route& route = found->second;
    if (fresh) {
      map_.route(from, to, route.hops);
      if (!kWhole && !route.hops.empty()) {
        route.last = std::exchange(route.hops.back().latency, Time(0));
      }
    }
    return route;
  }

  void arrive(Events& events, const Sent& sent) const {
    const Time when =
        kWhole ? ceil_nanoseconds(queue_.now()) : floor_nanoseconds(queue_.now() + sent.last);
    events.push(std::max(when, events.now()), sent.arrival);
  }

  topology::LinkMap map_;
  Links links_;
  engine::EventQueue queue_;
  std::unordered_map<std::int64_t, Route> routes_;  ///< by pair; only looked up
  std::vector<Sent> in_flight_;                     ///< by TransferId
  Time woken_{-1};                                  ///< the last instant asked for
};

/// Returns the links of ASTRA-sim's dimensions, as machine_of() has them; those of `wires` where it
/// has a graph.
topology::LinkMap link_map(const std::vector<Dimension>& network, const topology::Wires& wires) {
  topology::LinkMap map(network_of(network, Time(0)));
  map.lay(wires);
  return map;
}

}  // namespace

Result<void> check_linked(Backend backend, const std::vector<Dimension>& network,
                          const topology::Wires& wires) {
  if (backend == Backend::packet) {
    const topology::LinkMap map = link_map(network, wires);
    return packets::PacketLinks(map, {}).check();
  }
  if (backend != Backend::flit) {
    return {};
  }
  if (wires.graph) {
    return fail("flits run by the dimensions here: expected fifo, flow or packet on a topology");
  }
  const topology::LinkMap map = link_map(network, wires);
  return flit::FlitNetwork(map, flit::FabricSettings{}, true).check();
}

std::unique_ptr<Network> linked_network(Backend backend, const std::vector<Dimension>& network,
                                        const topology::Wires& wires) {
  topology::LinkMap map = link_map(network, wires);
  if (backend == Backend::flit) {
    return std::make_unique<LinkedNetwork<flit::FlitNetwork>>(std::move(map), wires.seed);
  }
  if (backend == Backend::packet) {
    return std::make_unique<LinkedNetwork<packets::PacketLinks>>(std::move(map), wires.seed);
  }
  if (backend == Backend::flow) {
    return std::make_unique<LinkedNetwork<network::FairNetwork>>(std::move(map), wires.seed);
  }
  return std::make_unique<LinkedNetwork<network::FifoNetwork>>(std::move(map), wires.seed);
}

}  // namespace orrery::astra
