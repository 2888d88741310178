// SPDX-License-Identifier: Apache-2.0
/// Tensors are what nodes read and write.
///
///   value        what one node computes and others read: bytes on one rank, and how the ranks of
///                communicators hold it together. A node runs after the writers of what it reads.
///   allocation   memory that counts as a row of the workload's table `memory`, from the first node
///                that uses it to the last; values lie in allocations, which say nothing of order
///
/// A piece of work that runs in several instances of templates (forward, backward) hands its
/// allocations on: one `leaves`, the other `enters`; nothing but their bytes joins the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "graph/index.h"

namespace orrery::graph {

/// Says how the ranks of one communicator hold a tensor: each a part of it, or each a partial sum
/// of it.
struct Sharding {
  enum class Kind : std::uint8_t { shard, partial };
  GroupIndex group;
  Kind kind = Kind::shard;
  int dimension = 0;  ///< of a shard: 0 rows (tokens), 1 columns (features)

  friend bool operator==(const Sharding&, const Sharding&) = default;
};

struct Tensor {
  enum class Lifetime : std::uint8_t {
    instance,  ///< from its first use to its last
    leaves,    ///< from its first use (none: the instance's end) until another instance ends it
    enters,    ///< there when the instance begins, until its last use (none: the instance's end)
    run,       ///< of a role: always there
  };

  std::string name;              ///< of an allocation; a value is what its writer is called
  Bytes bytes{0};                ///< on one rank
  std::vector<Sharding> layout;  ///< whole on every rank of communicators that it does not name
  MemoryIndex memory;            ///< of an allocation; none: a value
  Lifetime lifetime = Lifetime::instance;
  int tier = 0;  ///< as Node::tier; 0: the device's own
  /// Allocations that leave and enter under one number are one and the same, for all instances in
  /// flight. 0: each instance has its own.
  std::uint32_t shared = 0;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// A node's use of a tensor of its template.
struct Use {
  int tensor = 0;
  int at = 0;  ///< which of the node's operators

  friend bool operator==(const Use&, const Use&) = default;
};

}  // namespace orrery::graph
