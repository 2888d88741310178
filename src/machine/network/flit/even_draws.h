// SPDX-License-Identifier: Apache-2.0
/// Draws of one class whose packets are alike: for all nodes and many cycles at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/network/flit/traffic_class.h"

namespace orrery::flit {

/// The draws of ClassDraws where nothing but whether and the target is drawn. Nodes draw in turn;
/// one whose packet has left draws for the cycles before, too, until it creates the next.
class EvenDraws {
 public:
  static bool can_draw(const Network& network) {
    const TrafficClass& first = network.classes.front();
    return network.classes.size() == 1 && first.sizes.size() == 1 && !first.transacts &&
           !first.has_bursts() && network.router.priority != Priority::age &&
           network.router.priority != Priority::sequence;
  }

  EvenDraws(const Network& network, double rate)
      : traffic_(*network.traffic.front()),
        flits_(static_cast<std::uint32_t>(network.classes.front().sizes.front())),
        probability_(network.classes.front().probability(rate)),
        next_(network.graph.nodes.size(), kEven) {}

  /// Draws for all nodes, for this cycle: create(node, packet).
  template <class Create>
  bool draw(Engine& engine, Create create) {
    bool created = false;
    const Cycle now = engine.now();
    Random& random = engine.random();
    for (std::uint32_t node = 0; node < next_.size(); ++node) {
      if (next_[node] == kEven) {
        if (random.unit() < probability_) {
          make(engine, node, now, create);
          created = true;
        }
        continue;
      }
      while (engine.is_free(node) && next_[node] <= now) {
        if (random.unit() < probability_) {
          make(engine, node, next_[node], create);
          created = true;
        } else {
          ++next_[node];
        }
      }
      catch_up(engine, node, now + 1);
    }
    return created;
  }

  /// No node is behind.
  bool draws_together() const { return behind_ == 0; }
  /// Draws as draw() does for all cycles before `end` until one in which a packet is created; now()
  /// is that cycle then. Requires draws_together().
  template <class Create>
  bool draw_together(Engine& engine, Cycle end, Create create) {
    const auto nodes = static_cast<std::int64_t>(next_.size());
    Random& random = engine.random();
    const std::int64_t draws = nodes * (end - engine.now());
    const std::int64_t missed = random.until_below(probability_, draws);
    if (missed == draws) {
      return false;
    }
    engine.skip(engine.now() + missed / nodes);
    for (std::int64_t node = missed % nodes; node < nodes;) {
      make(engine, static_cast<std::uint32_t>(node), engine.now(), create);
      ++node;
      node += random.until_below(probability_, nodes - node);
    }
    return true;
  }

  /// Catches up after a step: a node that has sent its packet within the cycle is not behind.
  void catch_up(const Engine& engine) {
    for (const std::uint32_t node : engine.freed_sources()) {
      catch_up(engine, node, engine.now());
    }
  }
  /// Every node has drawn for the cycles before `cycle`.
  bool has_drawn(Cycle cycle) const {
    return std::all_of(next_.begin(), next_.end(),
                       [&](Cycle next) { return next == kEven || next >= cycle; });
  }

 private:
  static constexpr Cycle kEven = -1;

  template <class Create>
  void make(Engine& engine, std::uint32_t node, Cycle created, Create create) {
    Random& random = engine.random();
    const std::uint32_t target = traffic_.target(node, random);
    random.below(1);  // which of the one network
    create(node, {.target = target, .flits = flits_, .when = created});
    behind_ += next_[node] == kEven ? 1 : 0;
    next_[node] = created + 1;
  }

  void catch_up(const Engine& engine, std::uint32_t node, Cycle next) {
    if (engine.is_free(node) && next_[node] == next) {
      next_[node] = kEven;
      --behind_;
    }
  }

  const Traffic& traffic_;
  std::uint32_t flits_;
  double probability_;
  std::vector<Cycle> next_;   ///< by node, the cycle that it draws for next; kEven: this one
  std::uint64_t behind_ = 0;  ///< nodes that wait for their packet to leave, or draw for the past
};

}  // namespace orrery::flit
