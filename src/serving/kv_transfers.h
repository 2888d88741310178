// SPDX-License-Identifier: Apache-2.0
/// Keys and values on their way from the engines that compute prompts to those that decode.
/// Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "engine/event_queue.h"
#include "machine/machine.h"
#include "machine/network/fair.h"
#include "machine/network/fifo.h"
#include "machine/topology/link_map.h"
#include "simulate/network_model.h"

namespace orrery::serving {

/// Consecutive devices of a machine, one tensor parallel rank each.
struct Placement {
  std::int64_t first = 0;
  std::int64_t ranks = 1;
};

/// Messages between the ranks of two engines, all transfers on the machine's links: first come
/// first served with `fifo` (network::FifoNetwork), else sharing them by max-min fairness
/// (network::FairNetwork). With tp_s ranks at the source and tp_d at the destination,
///
///   tp_d >= tp_s   rank r gets its share from rank floor(r tp_s / tp_d)
///   tp_d <  tp_s   rank r gets equal parts of it from the ranks [r, r + 1) tp_s / tp_d
///
/// A transfer ends with its last message. Pulled as a whole after the prompt (vLLM's NIXL
/// connector); ignores the messages that start it.
class KvTransfers {
 public:
  /// Requires a network that is not of packets or flits.
  KvTransfers(const machine::Machine& machine, std::optional<simulate::NetworkModel> network);

  /// Requires at >= the last advance(). `bytes` of one destination rank.
  std::size_t begin(Time at, const Placement& source, const Placement& destination, Bytes bytes);
  /// When something changes; Time::max(): nothing is on its way.
  Time next() const { return queue_.empty() ? Time::max() : queue_.next_time(); }
  /// Brings the network to `until`; the transfers that have ended by then, in their order.
  const std::vector<std::size_t>& advance(Time until);

 private:
  struct Transfer {
    Placement source;
    Placement destination;
    Bytes bytes{0};
    std::int64_t messages = 0;  ///< not yet there
  };
  void start(std::size_t transfer);
  void start_message(std::size_t transfer, std::int64_t from, std::int64_t to, Bytes bytes);

  topology::LinkMap map_;
  std::variant<network::FairNetwork, network::FifoNetwork> network_;
  engine::EventQueue queue_;
  std::vector<Transfer> transfers_;
  std::vector<std::size_t> owner_;  ///< by the network's number of a message
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<topology::Hop>> routes_;
  std::vector<std::size_t> ended_;
};

}  // namespace orrery::serving
