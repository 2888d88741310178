// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/systolic_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace orrery::compute {
namespace {

struct Fold {
  std::int64_t outer = 0;
  std::int64_t inner = 0;
};

/// An index and how many folds are as it is.
struct Repeated {
  std::int64_t index = 0;
  double times = 1;
};

/// The folds in one order: along rows first, or along columns.
class FoldOrder {
 public:
  FoldOrder(const FoldGrid& grid, bool rows_first, double per_fold, const Feed& feed, Sums sums)
      : grid_(grid), rows_first_(rows_first), per_fold_(per_fold), feed_(feed), sums_(sums) {}

  /// Indices that stand for all: a fold's time depends on itself and its neighbours, and only the
  /// first and the last index differ from others.
  MemoryCost cost(bool every_fold) const {
    const std::vector<Repeated> inner = indices(inner_count(), every_fold);
    MemoryCost cost;
    for (const Repeated& o : indices(outer_count(), every_fold)) {
      for (const Repeated& i : inner) {
        add({o.index, i.index}, o.times * i.times, cost);
      }
    }
    const Fold last{outer_count() - 1, inner_count() - 1};
    cost.stall += cycles(fetched({0, 0}), {}) + cycles({}, written(last));
    return cost;
  }

 private:
  static std::vector<Repeated> indices(std::int64_t count, bool all) {
    constexpr std::int64_t kAlike = 2;  // this index and all after it but the last two
    std::vector<Repeated> list;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!all && i == kAlike && count > kAlike + 3) {
        list.push_back({i, static_cast<double>(count - kAlike - 2)});
        i = count - 3;
        continue;
      }
      list.push_back({i, 1});
    }
    return list;
  }

  std::int64_t inner_count() const { return (rows_first_ ? grid_.rows : grid_.cols).blocks(); }
  std::int64_t outer_count() const { return (rows_first_ ? grid_.cols : grid_.rows).blocks(); }
  std::int64_t row_of(Fold fold) const { return rows_first_ ? fold.inner : fold.outer; }
  std::int64_t col_of(Fold fold) const { return rows_first_ ? fold.outer : fold.inner; }

  double bytes_of(const Block& block, Fold fold) const {
    const double rows = grid_.rows.block(row_of(fold));
    const double cols = grid_.cols.block(col_of(fold));
    return block.per_row * rows + block.per_col * cols + block.per_cell * rows * cols;
  }

  bool follows_inner(const Block& block) const {
    return (rows_first_ ? block.per_row : block.per_col) > 0;
  }
  /// The whole operand is in its half, if it moves along the inner folds; its block, if not.
  bool fits(const Block& block) const {
    const auto rows = static_cast<double>(grid_.rows.extent);
    const auto cols = static_cast<double>(grid_.cols.extent);
    if (follows_inner(block)) {
      return block.per_row * rows + block.per_col * cols <= block.half;
    }
    return bytes_of(block, {0, 0}) <= block.half;
  }

  double read(const Block& block, Fold fold) const {
    const bool first = follows_inner(block) ? fold.outer == 0 : fold.inner == 0;
    const bool again = block.per_cell > 0 || !fits(block);
    return first || again ? bytes_of(block, fold) : 0;
  }

  OperandTraffic fetched(Fold fold) const {
    OperandTraffic bytes{read(grid_.input, fold), read(grid_.filter, fold), 0};
    if (spills() && row_of(fold) > 0) {
      bytes.output = bytes_of(grid_.output, fold);
    }
    return bytes;
  }
  /// Partial sums go to memory and come back.
  bool spills() const { return sums_ == Sums::move && !fits(grid_.output); }
  OperandTraffic written(Fold fold) const {
    const bool whole = sums_ == Sums::stay || row_of(fold) + 1 == grid_.rows.blocks();
    return {0, 0, whole || spills() ? bytes_of(grid_.output, fold) : 0};
  }

  double cycles(const OperandTraffic& in, const OperandTraffic& out) const {
    return std::max({(in.input + out.input) / feed_.input, (in.filter + out.filter) / feed_.filter,
                     (in.output + out.output) / feed_.output,
                     (in.sum() + out.sum()) / feed_.shared});
  }

  void add(Fold fold, double times, MemoryCost& cost) const {
    const bool is_first = fold.outer == 0 && fold.inner == 0;
    const bool last_inner = fold.inner + 1 == inner_count();
    const bool is_last = last_inner && fold.outer + 1 == outer_count();
    const Fold next = last_inner ? Fold{fold.outer + 1, 0} : Fold{fold.outer, fold.inner + 1};
    const Fold before = fold.inner == 0 ? Fold{fold.outer - 1, inner_count() - 1}
                                        : Fold{fold.outer, fold.inner - 1};
    const double transfer = cycles(is_last ? OperandTraffic{} : fetched(next),
                                   is_first ? OperandTraffic{} : written(before));
    cost.stall += times * std::max(0.0, transfer - per_fold_);
    const OperandTraffic in = fetched(fold);
    const OperandTraffic out = written(fold);
    cost.bytes.input += times * in.input;
    cost.bytes.filter += times * in.filter;
    cost.bytes.output += times * (in.output + out.output);
  }

  const FoldGrid& grid_;
  bool rows_first_;
  double per_fold_;
  const Feed& feed_;
  Sums sums_;
};

MemoryCost faster_order(const FoldGrid& grid, double per_fold, const Feed& feed, Sums sums,
                        bool every_fold) {
  const MemoryCost rows = FoldOrder(grid, true, per_fold, feed, sums).cost(every_fold);
  const MemoryCost cols = FoldOrder(grid, false, per_fold, feed, sums).cost(every_fold);
  constexpr double kRounding = 1e-9;
  if (std::abs(rows.stall - cols.stall) > kRounding * rows.stall) {
    return rows.stall < cols.stall ? rows : cols;
  }
  return {std::min(rows.stall, cols.stall),
          rows.bytes.sum() <= cols.bytes.sum() ? rows.bytes : cols.bytes};
}

}  // namespace

MemoryCost memory_cost(const FoldGrid& grid, double per_fold, const Feed& feed, Sums sums) {
  return faster_order(grid, per_fold, feed, sums, false);
}

MemoryCost memory_cost_by_fold(const FoldGrid& grid, double per_fold, const Feed& feed, Sums sums) {
  return faster_order(grid, per_fold, feed, sums, true);
}

}  // namespace orrery::compute
