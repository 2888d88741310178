// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/systolic.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "machine/compute/systolic_memory.h"

namespace orrery::compute {
namespace {

constexpr double kBitsPerByte = 8;

double as_double(std::int64_t value) {
  return static_cast<double>(value);
}

std::int64_t parts(std::int64_t extent, std::int64_t width) {
  return (extent + width - 1) / width;
}

/// Bits that say one of `values`.
double bits_for(double values) {
  return values > 1 ? std::ceil(std::log2(values)) : 0;
}

/// Bytes per kept weight, its place included.
double filter_word(const SystolicProblem& problem) {
  const Sparsity& sparsity = problem.sparsity;
  if (sparsity.dense()) {
    return problem.word_bytes;
  }
  const auto n = as_double(problem.shape.n);
  const auto k = as_double(problem.shape.k);
  const double kept = as_double(compressed_depth(problem.shape.k, sparsity)) * n;
  double bits = 0;
  switch (sparsity.format) {
    case Sparsity::Format::ellpack_block:
      bits = bits_for(as_double(sparsity.m));
      break;
    case Sparsity::Format::csr:
      bits = bits_for(n) + (k + 1) * bits_for(kept + 1) / kept;
      break;
    case Sparsity::Format::csc:
      bits = bits_for(k) + (n + 1) * bits_for(kept + 1) / kept;
      break;
  }
  return problem.word_bytes + bits / kBitsPerByte;
}

/// The dataflow's rows of the table in systolic.h.
struct Mapping {
  std::int64_t on_rows = 0;   ///< what the array's rows hold
  std::int64_t on_cols = 0;   ///< what its columns hold
  std::int64_t streamed = 0;  ///< what passes through
  std::int64_t fill = 0;      ///< cycles of a fold beside `streamed`
  std::int64_t drain = 0;     ///< after a fold, until its last cell has nothing left (for D)
};

/// Returns the multiply-accumulates with weights that may not be zero.
double macs_of(const SystolicProblem& problem) {
  const graph::GemmShape& s = problem.shape;
  return flops_of(s).value() / 2 * as_double(compressed_depth(s.k, problem.sparsity)) /
         as_double(s.k);
}

Mapping mapping_of(const SystolicProblem& problem, const SystolicArray& array) {
  const graph::GemmShape& s = problem.shape;
  const std::int64_t depth = compressed_depth(s.k, problem.sparsity);
  const std::int64_t rows = array.rows;
  const std::int64_t cols = array.cols;
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      return {s.m, s.n, depth, rows + cols - 2, 0};
    case Dataflow::weight_stationary:
      return {depth, s.n, s.m, 2 * rows + cols - 2, cols - 1};
    default:
      return {s.k, s.m, s.n, 2 * rows + cols - 2, cols - 1};
  }
}

FoldGrid grid_of(const SystolicProblem& problem, const SystolicArray& array, const Mapping& map) {
  const graph::GemmShape& s = problem.shape;
  FoldGrid grid{.rows = {map.on_rows, array.rows}, .cols = {map.on_cols, array.cols}};
  const double filter = filter_word(problem);
  const auto half = [](Bytes sram) { return as_double(sram.value()) / 2; };
  const double depth = as_double(compressed_depth(s.k, problem.sparsity));
  const Block input{.per_row = 0, .per_col = 0, .half = half(array.input_sram)};
  grid.input = input;
  grid.filter.half = half(array.filter_sram);
  grid.output.half = half(array.output_sram);
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      grid.input.per_row = as_double(s.k) * problem.word_bytes;
      grid.filter.per_col = depth * filter;
      grid.output.per_cell = problem.output_bytes;
      break;
    case Dataflow::weight_stationary:
      grid.input.per_row = as_double(s.m) * as_double(s.k) / depth * problem.word_bytes;
      grid.filter.per_cell = filter;
      grid.output.per_col = as_double(s.m) * problem.output_bytes;
      break;
    default:
      grid.filter.per_row = as_double(s.n) * depth / as_double(s.k) * filter;
      grid.input.per_cell = problem.word_bytes;
      grid.output.per_col = as_double(s.n) * problem.output_bytes;
      break;
  }
  return grid;
}

OperandTraffic sram_words(const SystolicProblem& problem, const SystolicArray& array) {
  const graph::GemmShape& s = problem.shape;
  const double input = as_double(s.m) * as_double(s.k);
  const double filter = as_double(compressed_depth(s.k, problem.sparsity)) * as_double(s.n);
  const double output = as_double(s.m) * as_double(s.n);
  const auto times = [](std::int64_t extent, std::int64_t width) {
    return as_double(parts(extent, width));
  };
  const std::int64_t depth =
      array.dataflow == Dataflow::input_stationary ? s.k : compressed_depth(s.k, problem.sparsity);
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      return {input * times(s.n, array.cols), filter * times(s.m, array.rows), output};
    case Dataflow::weight_stationary:
      return {input * times(s.n, array.cols), filter, output * times(depth, array.rows)};
    default:
      return {input, filter * times(s.m, array.cols), output * times(depth, array.rows)};
  }
}

void scale(OperandTraffic& traffic, double factor) {
  traffic.input *= factor;
  traffic.filter *= factor;
  traffic.output *= factor;
}

/// Returns a product of which `arrays` arrays do a part each; all are as long as the first.
SystolicCost times(SystolicCost cost, double arrays) {
  cost.folds *= arrays;
  scale(cost.sram_words, arrays);
  scale(cost.dram_bytes, arrays);
  return cost;
}

/// `part` of the arrays' work is the whole of `problem`.
SystolicCost split_cost(const SystolicProblem& problem, const SystolicArray& array,
                        const Feed& feed, std::int64_t over_batch, std::int64_t over_m) {
  const std::int64_t over_n = array.arrays / over_batch / over_m;
  SystolicProblem part = problem;
  const auto share = [](std::int64_t& extent, std::int64_t over) {
    const std::int64_t whole = extent;
    extent = parts(whole, over);
    return parts(whole, extent);  // arrays with work
  };
  const std::int64_t busy = share(part.shape.batch, over_batch) * share(part.shape.m, over_m) *
                            share(part.shape.n, over_n);
  Feed own = feed;
  own.shared /= as_double(busy);
  SystolicCost cost = times(systolic_cost(part, array, own), as_double(busy));
  cost.macs = macs_of(problem);
  const double cells = as_double(array.rows * array.cols) * as_double(array.arrays);
  const double of_parts = cost.macs / (macs_of(part) * as_double(array.arrays));
  cost.utilization = cost.macs / (cost.cycles * cells);
  cost.mapping_efficiency *= of_parts;
  cost.compute_utilization *= of_parts;
  return cost;
}

}  // namespace

std::int64_t compressed_depth(std::int64_t k, const Sparsity& sparsity) {
  return k / sparsity.m * sparsity.n + std::min(k % sparsity.m, sparsity.n);
}

SystolicCost systolic_cost(const SystolicProblem& problem, const SystolicArray& array,
                           const Feed& feed) {
  assert(array.dataflow != Dataflow::best && "one dataflow");
  const graph::GemmShape& s = problem.shape;
  const Mapping map = mapping_of(problem, array);
  const double per_fold = as_double(map.streamed + map.fill);
  const double folds =
      as_double(parts(map.on_rows, array.rows)) * as_double(parts(map.on_cols, array.cols));
  const MemoryCost memory =
      memory_cost(grid_of(problem, array, map), per_fold, feed,
                  array.dataflow == Dataflow::output_stationary ? Sums::stay : Sums::move);
  const auto batch = as_double(s.batch);
  const auto cells = as_double(array.rows * array.cols);
  SystolicCost cost;
  cost.dataflow = array.dataflow;
  cost.folds = batch * folds;
  cost.stall_cycles = batch * memory.stall;
  cost.cycles = batch * (folds * per_fold) + cost.stall_cycles;
  cost.macs = macs_of(problem);
  cost.utilization = cost.macs / (cost.cycles * cells);
  cost.mapping_efficiency = as_double(map.on_rows) * as_double(map.on_cols) / (folds * cells);
  cost.compute_utilization =
      cost.macs / (batch * folds * (per_fold + as_double(map.drain)) * cells);
  cost.sram_words = sram_words(problem, array);
  scale(cost.sram_words, batch);
  cost.dram_bytes = memory.bytes;
  scale(cost.dram_bytes, batch);
  return cost;
}

namespace {

/// Says how several arrays share a problem: parts of the batch, of m, and of the rest.
struct Split {
  std::int64_t over_batch = 1;
  std::int64_t over_m = 1;
};

std::vector<Split> splits(std::int64_t arrays) {
  std::vector<Split> result;
  for (std::int64_t over_batch = 1; over_batch <= arrays; ++over_batch) {
    for (std::int64_t over_m = 1; over_m * over_batch <= arrays; ++over_m) {
      if (arrays % over_batch == 0 && arrays / over_batch % over_m == 0) {
        result.push_back({over_batch, over_m});
      }
    }
  }
  return result;
}

}  // namespace

SystolicCost device_cost(const SystolicProblem& problem, const SystolicArray& array,
                         const Feed& feed) {
  std::optional<SystolicCost> best;
  for (const Dataflow dataflow :
       {Dataflow::output_stationary, Dataflow::weight_stationary, Dataflow::input_stationary}) {
    if (array.dataflow != Dataflow::best && array.dataflow != dataflow) {
      continue;
    }
    SystolicArray one = array;
    one.dataflow = dataflow;
    for (const Split& split : splits(array.arrays)) {
      const SystolicCost cost = split_cost(problem, one, feed, split.over_batch, split.over_m);
      if (!best || cost.cycles < best->cycles ||
          (cost.cycles == best->cycles && cost.dram_bytes.sum() < best->dram_bytes.sum())) {
        best = cost;
      }
    }
  }
  return *best;
}

Energy systolic_energy(const SystolicProblem& problem, const SystolicCost& cost,
                       const SystolicArray& array, EnergyPerByte memory_energy) {
  const double sram = cost.sram_words.input * problem.word_bytes +
                      cost.sram_words.filter * filter_word(problem) +
                      cost.sram_words.output * problem.output_bytes;
  return array.mac_energy * cost.macs + Energy(array.sram_energy.value() * sram) +
         Energy(memory_energy.value() * cost.dram_bytes.sum());
}

graph::GemmShape gemm_of(const Convolution& c, bool round_up) {
  const auto out = [&](std::int64_t extent, std::int64_t filter) {
    const std::int64_t rest = extent - filter;
    return (round_up ? parts(rest, c.stride) : rest / c.stride) + 1;
  };
  return {.batch = 1,
          .m = out(c.height, c.filter_height) * out(c.width, c.filter_width),
          .n = c.filters,
          .k = c.filter_height * c.filter_width * c.channels};
}

}  // namespace orrery::compute
