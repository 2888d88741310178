// SPDX-License-Identifier: Apache-2.0
/// Collectives of blocks of nodes as messages that wait for one another. N ranks, X x Y x Z, M
/// bytes of the whole tensor.
///
///   AG   rings: X-1 steps of M/N, then Y-1 of M/(YZ), Z-1 of M/Z. On a mesh the step from the last
///        to the first crosses the row. Switch: recursive doubling, steps of 2^i M/N
///   RS   rings: X-1 steps of M/X, Y-1 of M/(XY), Z-1 of M/N; switch: the steps of AG backwards.
///        What is received is added before it goes on
///   AR   RS, AG
///   A2A  in x, then y, then z: steps s = 1 ... X-1, rank i to i + s, of M/(X N). Switch: log2 N
///        exchanges of M/(2N)
///   P2P  rank i to rank i of another block, M each
///   M2M  every source to every target, M/(ST) each, all at once; source i begins at target i
///
/// A step waits for the one received before. What comes after a collective waits on mesh and torus
/// for all ranks of the block, on a switch for its own rank.
/// `artifact`: with two defects of the published program. D2: a switch's RS answers an exchange
/// only when it has received and added. D3: RS on a 3-D torus runs x and y at once. Requires: a
/// power of two of ranks on a switch, in a line. Source: the public artifact of Chimera (ISCA
/// 2025).
#pragma once

#include <vector>

#include "collective/chimera/network.h"

namespace orrery::chimera {

enum class Operation : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  send,
  many_to_many
};

/// Cycles that adding takes: ceil(bytes x per_byte), at least 1.
struct Rules {
  double per_byte = 9.6e-14;
  bool artifact = false;
};

/// Tags hold what each rank waits for.
using Tags = std::vector<std::vector<std::uint32_t>>;

class Steps {
 public:
  Steps(const Network& network, const Rules& rules) : network_(network), rules_(rules) {}

  /// Appends an operation; returns what the next one on the block (of `to`, where data moves there)
  /// waits for.
  Tags add(Operation operation, const Block& block, Bytes m, const Tags& after);
  Tags add(Operation operation, const Block& from, const Block& to, Bytes m, const Tags& after);

  const flit::LoopSchedule& schedule() const { return schedule_; }

 private:
  enum class Ring : std::uint8_t { gather, reduce, exchange };
  std::uint32_t message(std::uint32_t source, std::uint32_t target, Bytes bytes,
                        const std::vector<std::uint32_t>& after);
  /// Appends a message, and its addition where `kind` reduces; returns the last of them.
  std::uint32_t arrival(Ring kind, std::uint32_t source, std::uint32_t target, Bytes bytes,
                        const std::vector<std::uint32_t>& after);
  std::uint32_t addition(std::uint32_t node, Bytes bytes, std::uint32_t after);
  Tags rings(Ring kind, const Block& block, Bytes m, const Tags& after);
  Tags along(Ring kind, const Block& block, std::size_t dimension, Bytes m, Tags tags);
  Tags doubling(Ring kind, const Block& block, Bytes m, Tags tags);
  Tags half_duplex(const Block& block, std::int32_t distance, Bytes bytes, const Tags& tags);
  Tags released(Tags tags) const;

  const Network& network_;
  Rules rules_;
  flit::LoopSchedule schedule_;
};

}  // namespace orrery::chimera
