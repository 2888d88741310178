// SPDX-License-Identifier: Apache-2.0
/// Themis: in which order a chunk goes through the dimensions, so that their loads balance.
/// Source: Rashidi et al., "Themis: A Network Bandwidth-Aware Collective Scheduling Policy", ISCA
/// 2022; its greedy offline variant.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "compat/astra/communicators.h"
#include "compat/astra/quirks.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// Keeps a load per dimension, in MiB as if it had the bandwidth of dimension 0, one for all ranks:
/// whoever issues a collective first charges it. Loads start at 0 and are reset when rank 0 issues
/// a collective at a new time; the order in which dimensions stand settles ties and is kept from
/// chunk to chunk until then.
///
/// A chunk takes the dimensions in ascending order of load (all-gather: descending), unless the
/// difference between the most loaded dimension and the first one is worth less than a 16th of a
/// chunk: then the natural order.
class Themis {
 public:
  struct Load {
    int dimension = 0;
    double mebibytes = 0;
  };
  struct State {
    std::vector<Load> loads;  ///< one per dimension, in the order that settles ties
    Time begun{0};
  };

  Themis(const Wires& wires, const Quirks& quirks);
  State initial() const;

  /// Rank 0 issues a collective.
  void begin(State& state, Time now) const;
  /// Returns the order of the dimensions for the next chunk. `gathers`: an all-gather; otherwise a
  /// reduce-scatter (of an all-reduce too). Requires a shape with one axis per dimension.
  std::vector<int> next(State& state, const Shape& shape, bool gathers, Bytes chunk) const;

 private:
  double scale(int d) const { return scale_[static_cast<std::size_t>(d)]; }
  /// Returns the chunk that would even out the loads of the first and the last dimension.
  double evening_chunk(const State& state, const Shape& shape, bool gathers) const;
  std::vector<int> natural(State& state, const Shape& shape, bool gathers, Bytes chunk) const;
  void charge(State& state, const Shape& shape, const std::vector<int>& order, bool gathers,
              Bytes chunk) const;
  void charge_by_position(State& state, const Shape& shape, Bytes chunk) const;

  Quirks quirks_;
  std::vector<double> scale_;  ///< bandwidth of a dimension over that of dimension 0
};

}  // namespace orrery::astra
