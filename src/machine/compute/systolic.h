// SPDX-License-Identifier: Apache-2.0
/// Cycles, traffic and energy of matrix products on systolic arrays, in closed form.
///
/// C[M, N] = A[M, K] B[K, N] on R x C cells is cut into folds, which run one after the other:
///
///   os   ceil(M/R) ceil(N/C) folds of K + R + C - 2 cycles
///   ws   ceil(K/R) ceil(N/C) folds of M + 2R + C - 2
///   is   ceil(K/R) ceil(M/C) folds of N + 2R + C - 2
///
/// SCALE-Sim v2 says one cycle less of every layer (RTL takes what stands here).
///
/// Memory: what the next fold needs is fetched, and what the last one made is written, while a fold
/// computes; a fold takes the longest of the three. The first fetch and the last write stand alone.
/// An operand is fetched once if it fits half of its SRAM; else its block of a fold is fetched
/// where it changes, and in every fold if the block does not fit either. Partial sums of ws and is
/// that do not fit go to memory and come back in every fold. Folds run along rows or along columns
/// first, whichever is faster. So stalls are never negative, fall with bandwidth and with SRAM, and
/// bytes / bandwidth is a bound.
///
/// Words (elements) in SRAM, of one product:
///
///         input reads      filter reads     output writes
///   os    M K ceil(N/C)    K N ceil(M/R)    M N
///   ws    M K ceil(N/C)    K N              M N ceil(K/R)
///   is    M K              K N ceil(M/C)    M N ceil(K/R)
///
/// Sparsity N:M of the filter: at most n of m consecutive weights of a column are not zero, and are
/// kept with their places. os and ws take ceil(K/m) n (less where K ends) steps instead of K; is,
/// whose inputs stay, gains traffic only.
///
/// Ignores:  cycles of bank conflicts, of DRAM rows and of refresh; overlap of a fold's fill with
///           the drain of the one before; vector work.
/// Requires: extents >= 1. Counts are doubles, exact below 2^53.
/// Source:   Samajdar et al., ISPASS 2020 and SCALE-Sim v2 (cycles, SRAM counts); SCALE-Sim v3
///           (sparsity, several arrays); the memory model is ours (docs/models/systolic.md).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/names.h"
#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/systolic_array.h"

namespace orrery::compute {

/// Says that at most n of m consecutive weights along K are not zero.
struct Sparsity {
  enum class Format : std::uint8_t { ellpack_block, csr, csc };
  std::int64_t n = 1;
  std::int64_t m = 1;  ///< 1: dense
  Format format = Format::ellpack_block;

  bool dense() const { return n == m; }
  friend bool operator==(const Sparsity&, const Sparsity&) = default;
};
constexpr auto named_values(Sparsity::Format) {
  return std::to_array<Named<Sparsity::Format>>({
      {Sparsity::Format::ellpack_block, "ellpack_block", "log2(m) bits per weight: place in block"},
      {Sparsity::Format::csr, "csr", "column of every weight, and where each row begins"},
      {Sparsity::Format::csc, "csc", "row of every weight, and where each column begins"},
  });
}

/// Returns the depth of the compressed filter: what is left of K.
std::int64_t compressed_depth(std::int64_t k, const Sparsity& sparsity);

/// Bytes that one array moves to and from memory per cycle; infinite: never waits.
struct Feed {
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double input = kNever;  ///< of each operand's own
  double filter = kNever;
  double output = kNever;
  double shared = kNever;  ///< of all together
};

/// One product and how wide its elements are.
struct SystolicProblem {
  graph::GemmShape shape{};  ///< batch products, one after the other or on several arrays
  Sparsity sparsity{};
  double word_bytes = 1;    ///< of inputs and weights
  double output_bytes = 1;  ///< of sums
};

/// OperandTraffic has one figure for each operand.
struct OperandTraffic {
  double input = 0;
  double filter = 0;
  double output = 0;

  double sum() const { return input + filter + output; }
};

struct SystolicCost {
  Dataflow dataflow = Dataflow::output_stationary;  ///< never best
  double folds = 0;                                 ///< of all arrays and products
  double cycles = 0;                                ///< until the last array has finished
  double stall_cycles = 0;                          ///< of these, waiting for memory; never < 0
  double macs = 0;                 ///< multiplications by weights that may not be zero
  double utilization = 0;          ///< macs / (cycles * cells)
  double mapping_efficiency = 0;   ///< share of the cells of a fold that have work, mean
  double compute_utilization = 0;  ///< macs / (cells * cycles until the last cell has finished)
  OperandTraffic sram_words;       ///< read, read, written
  OperandTraffic dram_bytes;       ///< output: partial sums' way there and back counts
};

/// Returns the cost on one array, by one dataflow (not best), the batch one after the other.
SystolicCost systolic_cost(const SystolicProblem& problem, const SystolicArray& array,
                           const Feed& feed);

/// Returns the cost on the device: products of the batch, rows and columns of C are shared out to
/// the arrays in the way that is fastest, each array with its part of the shared bandwidth;
/// dataflow best tries all.
SystolicCost device_cost(const SystolicProblem& problem, const SystolicArray& array,
                         const Feed& feed);

/// Returns macs mac_energy + SRAM bytes sram_energy + memory bytes memory_energy. A filter's zeros
/// are not multiplied.
Energy systolic_energy(const SystolicProblem& problem, const SystolicCost& cost,
                       const SystolicArray& array, EnergyPerByte memory_energy);

/// A convolution without padding: padded sizes are given.
struct Convolution {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t filter_height = 1;
  std::int64_t filter_width = 1;
  std::int64_t channels = 1;
  std::int64_t filters = 1;
  std::int64_t stride = 1;
};
/// Returns the convolution as a product: m = OH OW, n = filters, k = filter_height filter_width
/// channels, with OH = floor((height - filter_height) / stride) + 1. `round_up`: ceil instead of
/// floor, as SCALE-Sim does, which counts windows that leave the image where stride does not
/// divide.
graph::GemmShape gemm_of(const Convolution& convolution, bool round_up);

}  // namespace orrery::compute
