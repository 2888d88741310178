// SPDX-License-Identifier: Apache-2.0
/// Packets of several classes, sizes and purposes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "machine/network/flit/engine.h"
#include "machine/network/flit/traffic.h"

namespace orrery::flit {

/// Purpose says what a packet of requests and replies is for; PacketKind is by it.
enum class Purpose : std::uint8_t { any, read_request, write_request, read_reply, write_reply };
inline constexpr std::size_t kPurposes = 5;
inline constexpr std::array<std::string_view, kPurposes> kPurposeNames{
    "any", "read_request", "write_request", "read_reply", "write_reply"};
inline constexpr int kMostClasses = 16;

struct TrafficClass {
  double share = 1;             ///< of the load
  std::string pattern;          ///< empty: the experiment's
  std::vector<int> sizes{1};    ///< flits; one of them is drawn for a packet
  std::vector<int> weights{1};  ///< of sizes, whole numbers
  double burst_alpha = 0;       ///< chance a cycle that a silent node begins a burst; 0: no bursts
  double burst_beta = 0;        ///< that a burst ends
  std::int64_t priority = 0;    ///< of Priority::traffic_class
  /// Packets are reads and writes, answered by their targets; replies go first.
  bool transacts = false;
  double write_share = 0.5;
  std::array<int, kPurposes> transaction_sizes{1, 1, 1, 1, 1};  ///< flits, by Purpose

  /// Flits that a drawn packet brings; of a transaction half of all four, rounded down as there.
  double mean_size() const {
    if (transacts) {
      const auto flits =
          std::accumulate(transaction_sizes.begin() + 1, transaction_sizes.end(), std::int64_t{0});
      const std::int64_t half = flits / 2;
      return static_cast<double>(half);
    }
    const double flits = std::inner_product(sizes.begin(), sizes.end(), weights.begin(), 0.0);
    return flits / std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  bool has_bursts() const { return burst_alpha > 0; }
  /// Returns the probability that a node draws a packet in a cycle, of a load of `rate` flits per
  /// node and cycle in all; in bursts x (alpha + beta) / alpha, so that the mean stays
  /// (Markov-modulated: Dally & Towles 2004, section 24.2).
  double probability(double rate) const {
    const double mean = rate * share / mean_size();
    return has_bursts() ? mean * (burst_alpha + burst_beta) / burst_alpha : mean;
  }
};

/// All that a run needs; what it refers to must outlive it.
struct Network {
  const RouterGraph& graph;
  const Routing& routing;
  const RouterSettings& router;
  std::vector<TrafficClass> classes;
  std::vector<const Traffic*> traffic;  ///< by class
  std::vector<PacketKind> kinds = {};   ///< by Purpose; empty: all VCs for all
};

/// A packet that a node creates.
struct Created {
  std::uint32_t target = 0;
  std::uint32_t flits = 1;
  std::uint32_t kind = 0;
  std::int64_t priority = 0;
  Cycle when = 0;
  bool counts = false;  ///< a reply to one that does
};

/// Draws of several classes, sizes or purposes, in BookSim's order: by node and class; first
/// whether, then read or write, the size, the target.
class ClassDraws {
 public:
  ClassDraws(const Network& network, double rate);

  /// All nodes draw for the cycles up to now() that they have not drawn for, each class until it
  /// creates a packet, if it has none. create(source, packet).
  template <class Create>
  bool draw(Engine& engine, Create create) {
    bool created = false;
    const auto classes = static_cast<std::uint32_t>(network_->classes.size());
    for (std::uint32_t source = 0; source < next_.size(); ++source) {
      const std::uint32_t of = source % classes;
      while (engine.is_free(source) && next_[source] <= engine.now()) {
        const Purpose purpose = issue(source, of, engine.random());
        const bool replies = purpose >= Purpose::read_reply;
        if (purpose != Purpose::any || drawn_) {
          create(source, make(source, of, purpose, engine.random()));
          created = true;
        }
        next_[source] += replies ? 0 : 1;
      }
    }
    return created;
  }

  /// A request has arrived now: its target answers.
  void answer(const Arrived& request, Cycle now, bool counts);
  /// Every node has drawn for `cycle`.
  bool has_drawn(Cycle cycle) const;

 private:
  struct Reply {
    std::uint32_t target = 0;
    Purpose purpose = Purpose::any;
    Cycle when = 0;
    bool counts = false;
  };
  Purpose issue(std::uint32_t source, std::uint32_t of, Random& random);
  bool draws(std::uint32_t source, std::uint32_t of, Random& random);
  Created make(std::uint32_t source, std::uint32_t of, Purpose purpose, Random& random);
  std::int64_t priority_of(std::uint32_t node, std::uint32_t of, Cycle created) const;

  const Network* network_;
  std::vector<double> probability_;  ///< by class
  std::vector<Cycle> next_;          ///< by source, the cycle that it draws for next
  std::vector<bool> in_burst_;
  std::vector<std::uint32_t> created_;       ///< by node, packets so far
  std::vector<std::vector<Reply>> replies_;  ///< by node, those that wait
  bool drawn_ = false;                       ///< whether issue() drew a packet
};

}  // namespace orrery::flit
