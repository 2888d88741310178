// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "collective/chimera/steps.h"

namespace orrery::chimera {

/// Cycles of collectives and transfers alone, end to end by Rules of the models (a cycle adds 256
/// bytes), each simulated once. Several threads may ask; who asks for what another simulates waits.
class Prices {
 public:
  /// Wherever the block stands: dimension order is the same everywhere.
  flit::Cycle of(const Network& network, Operation operation, const Extents& block, Bytes bytes);
  /// Wherever the blocks stand, as long as they are so far apart.
  flit::Cycle of(const Network& network, Operation operation, const Block& from, const Block& to,
                 Bytes bytes);

 private:
  /// Machine; operation, both blocks, what lies between them, bytes.
  using Key =
      std::tuple<Topology, Extents, Operation, Extents, Extents, std::optional<Extents>, Bytes>;
  template <class Simulate>
  flit::Cycle once(const Key& key, Simulate simulate);

  std::mutex lock_;
  std::map<Key, std::shared_future<flit::Cycle>> known_;
};

}  // namespace orrery::chimera
