// SPDX-License-Identifier: Apache-2.0
/// Says when a stage may be fullest, whatever bytes its pieces of work take: from its issue list,
/// once for all plans of a schedule.
///
/// Before a piece of work the stage holds
///
///   sum over groups g of equal chunks   f_g kept_g + w_g held_g + u_g resident_g
///
///   f   pieces whose forward has run and whose backward has not
///   w   pieces whose input gradients are there and whose weight gradients are not
///   u   chunks of which something is in flight, the piece that begins included
///
/// All these bytes are at least 0. So of the moments before pieces of one sort (say, a backward of
/// group 0) those do not matter of which another has as much of everything or more, nor those
/// between two others on a line. What is left is few: of 1F1B one a sort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "workload/memory/chunk_work.h"
#include "workload/plan/schedule.h"

namespace orrery::footprint {

/// Pieces of work that take the same: of a group a pass, or its forward and a backward of `other`.
struct PieceSort {
  enum class Work : std::uint8_t { forward, backward, input_gradient, weight_gradient, pair };
  Work work = Work::forward;
  std::size_t group = 0;
  std::size_t other = 0;  ///< of a pair

  bool runs_forward() const { return work == Work::forward || work == Work::pair; }
  friend bool operator==(const PieceSort&, const PieceSort&) = default;
};

/// Bytes of a group's chunk that stay after a pass.
struct GroupBytes {
  Bytes kept{0};
  Bytes held{0};
  Bytes resident{0};
};

class InFlight {
 public:
  /// The moments of these stages together. `groups`: of each of their chunks, from 0 on;
  /// `resident`: whether that may be more than 0.
  InFlight(const plan::PipelineShape& shape, std::span<const std::int64_t> stages,
           std::vector<std::size_t> groups, bool resident);

  std::size_t sorts() const { return sorts_.size(); }
  const PieceSort& sort(std::size_t number) const { return sorts_[number].sort; }
  /// Returns the most before a piece of this sort. `groups`: bytes of each.
  Bytes most_before(std::size_t number, std::span<const GroupBytes> groups) const;
  /// Returns the most of what one forward of each group brings to the host, while pieces of this
  /// sort run.
  Bytes most_on_host(std::size_t number, std::span<const Bytes> by_group) const;

 private:
  using Counts = std::vector<std::int64_t>;  // f, w where backwards are split, u, each by group
  struct Moments {
    PieceSort sort;
    std::vector<Counts> counts;
  };
  class Walk;

  std::size_t group_count_ = 0;
  bool splits_ = false;
  std::vector<Moments> sorts_;
};

}  // namespace orrery::footprint
