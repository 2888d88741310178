// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compat/astra/event.h"
#include "compat/astra/run.h"
#include "machine/topology/link_map.h"

namespace orrery::astra {

/// The links of ASTRA-sim's dimensions, as machine_of() has them; those of `wires` where it has a
/// graph.
topology::LinkMap link_map(const std::vector<Dimension>& network, const topology::Wires& wires);

/// Links of all dimensions that messages share as a model of machine/network says (Backend fifo,
/// flow, flit, packet): the interface of network.h, and
///
///   settle(events)   when an instant is over: what has begun and ended changes the others
///
///   route    that of the LinkMap, which crosses every dimension in which the ends differ
///   arrival  floor(time of the last byte + latency of the last link), in ns: alone with flow, what
///            the unaware network says of one dimension. flit: its last cycle, rounded up. packet:
///            its last packet, of the default protocol, rounded up
///
/// The model has a clock of its own, in picoseconds, which follows the run's.
class LinkedNetwork {
 public:
  static constexpr bool kStateless = false;

  /// Mistakes: flits on `wires`, and what the models' own check() says.
  static Result<void> check(Backend backend, const std::vector<Dimension>& network,
                            const topology::Wires& wires);
  /// Requires check().
  LinkedNetwork(Backend backend, const std::vector<Dimension>& network,
                const topology::Wires& wires);
  LinkedNetwork(LinkedNetwork&&) noexcept;
  LinkedNetwork& operator=(LinkedNetwork&&) noexcept;
  ~LinkedNetwork();

  void send(Events& events, std::int64_t from, std::int64_t to, Bytes bytes, Event arrival);
  /// Advances the message; what arrives is pushed for its nanosecond; null.
  const Event* advance(Events& events, const Event& event);
  void settle(Events& events);
  /// None: what links of dimensions have carried is not told apart by NPU.
  std::vector<RunResult::Link> links() const { return {}; }

 private:
  class Model;
  template <class Links>
  class ModelOf;
  std::unique_ptr<Model> model_;
};

}  // namespace orrery::astra
