// SPDX-License-Identifier: Apache-2.0
/// Keys and values on their way from the engines that compute prompts to those that decode.
/// Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/event_queue.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"
#include "simulate/network_model.h"

namespace orrery::serving {

/// Consecutive devices of a machine that hold the keys and values of a request, each its part of
/// heads, tokens and layers. Device first + h + heads (t + tokens l) has the parts h, t and l.
struct Placement {
  std::int64_t first = 0;
  std::int64_t heads = 1;   ///< tensor parallel ranks
  std::int64_t tokens = 1;  ///< context parallel ranks
  std::int64_t layers = 1;  ///< stages

  std::int64_t ranks() const { return heads * tokens * layers; }
};

/// Messages between the ranks of two engines, all transfers on the machine's links, which they
/// share as the network model says: as flits, as packets, first come first served (`fifo`), else by
/// max-min fairness. With n_s parts of the heads at the source and n_d at the destination,
///
///   n_d >= n_s   part r comes from part floor(r n_s / n_d)
///   n_d <  n_s   part r comes in equal shares from the parts [r, r + 1) n_s / n_d
///
/// and so do parts of tokens and of layers: a rank gets a message from every rank that has some of
/// its part of all three. A transfer ends with its last message. Keys and values are pulled as a
/// whole after the prompt (vLLM's NIXL connector). It ignores the messages that start it.
///
/// Where a transfer and collectives of an engine's steps want the same links, each has half.
/// With collectives of time c in a step that alone takes T,
///
///   step      T + c, of the steps that begin while the transfer is under way
///   transfer  moves T of its own time in T + c: it takes 1 + c / T times as long, by the last step
///             of the engine, of its two, with the greater c / T, before the hand-over
///
/// Ignores: that several transfers have more than half, that a transfer ends within a step.
class KvTransfers {
 public:
  KvTransfers(const machine::Machine& machine, std::optional<simulate::NetworkModel> network);
  ~KvTransfers();

  /// Mistakes: links that the model cannot simulate.
  Result<void> check() const;
  /// Requires at >= the last advance() and the bound of the last next(). `bytes` of one destination
  /// rank.
  std::size_t begin(Time at, const Placement& source, const Placement& destination, Bytes bytes);
  /// Returns the outermost of the machine's dimensions that a transfer crosses.
  int crossed(const Placement& source, const Placement& destination) const {
    return map_.outermost(source.first, destination.first);
  }
  /// Returns when something changes. Nothing may begin before `bound`; of what changes later a
  /// network of flits or packets knows nothing: Time::max().
  Time next(Time bound);
  /// Returns whether something is under way of which next() says only what comes before its bound.
  bool looks_ahead() const;
  /// Transfers in the order in which they began and ended.
  struct Changes {
    std::vector<std::size_t> begun;
    std::vector<std::size_t> ended;
  };
  /// Brings the network to `until`; what has changed since the last time.
  const Changes& advance(Time until);

 private:
  struct Links;
  template <class Network>
  struct LinksOf;
  struct Transfer {
    Placement source;
    Placement destination;
    Bytes bytes{0};
    std::int64_t messages = 0;  ///< not yet there
  };
  void start(std::size_t transfer);
  void start_message(std::size_t transfer, std::int64_t from, std::int64_t to, Bytes bytes);
  void settle();

  topology::LinkMap map_;
  std::unique_ptr<Links> links_;
  engine::EventQueue queue_;
  std::vector<Transfer> transfers_;
  std::vector<std::size_t> owner_;  ///< by the network's number of a message
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<topology::Hop>> routes_;
  Changes changes_;
  std::int64_t under_way_ = 0;
};

}  // namespace orrery::serving
