// SPDX-License-Identifier: Apache-2.0
/// The memory model of systolic.h: what the folds of one product fetch and write, and how long they
/// wait for it.
#pragma once

#include <cstdint>

#include "machine/compute/systolic.h"

namespace orrery::compute {

/// An extent in blocks, the last of which may be partial.
struct BlockedExtent {
  std::int64_t extent = 1;
  std::int64_t width = 1;

  std::int64_t blocks() const { return (extent + width - 1) / width; }
  double block(std::int64_t index) const {
    return static_cast<double>(index + 1 < blocks() ? width : extent - index * width);
  }
};

/// Bytes of an operand in a fold of r rows and c columns: exactly one of the three is not 0.
struct Block {
  double per_row = 0;   ///< r of these; the same for all columns
  double per_col = 0;   ///< c of these; the same for all rows
  double per_cell = 0;  ///< r c of these
  double half = 0;      ///< bytes that half of its SRAM holds
};

/// Folds by rows and columns.
struct FoldGrid {
  BlockedExtent rows;
  BlockedExtent cols;
  Block input{};
  Block filter{};
  Block output{};
};

/// Sums of a fold are whole (os), or partial until the last row of folds (ws, is).
enum class Sums : std::uint8_t { stay, move };

struct MemoryCost {
  double stall = 0;  ///< cycles beyond folds * per_fold
  OperandTraffic bytes;
};

/// Returns the cost of the faster order of folds; in O(1) for any number of folds.
MemoryCost memory_cost(const FoldGrid& grid, double per_fold, const Feed& feed, Sums sums);

/// Returns the same, every fold in turn: the reference for tests.
MemoryCost memory_cost_by_fold(const FoldGrid& grid, double per_fold, const Feed& feed, Sums sums);

}  // namespace orrery::compute
