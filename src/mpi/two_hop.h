// SPDX-License-Identifier: Apache-2.0
/// Collectives of ZeRO where networks between nodes are slow (workload/plan/low_bandwidth.h) run
/// over sub-communicators of an MPI job: `near` consecutive processes are a node.
///
///   reduce   each rank's n values summed, rank r keeps the r-th part. Two hops: all-to-all in the
///            node of what the ranks with each place in their nodes get, added up in the order of
///            ranks; all-to-all of those sums between the ranks with one place, added up in the
///            order of nodes
///   gather   every rank's n / ranks values to all
///   second   every rank of a node keeps 1 / near of what was gathered and the node gathers it
///            again, without the network between nodes
///
/// With `bits` 8 or 4 blocks of integers are sent with their scales (collective/block_quantize.h),
/// packed to exactly quantized_bytes(); with 0 the floats themselves.
///
/// Errors of messages end the job, as MPI does. Requires: `near` divides the ranks, which divide
/// the number of values.
/// Source: Wang et al. 2023 (ZeRO++, arXiv:2306.10209), sections 3.1 to 3.3.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/block_quantize.h"

namespace orrery::mpi {

/// Returns the bytes of blocks as they travel: integers of 4 bits two to a byte, the first in the
/// lower half, then the scales.
std::vector<std::byte> to_wire(const collective::QuantizedBlocks& blocks);
/// Requires the bytes of so many elements.
collective::QuantizedBlocks from_wire(std::span<const std::byte> wire, std::size_t elements,
                                      int bits, std::int64_t block);

class TwoLevels {
 public:
  /// All processes of the job together.
  TwoLevels(int near, std::int64_t block);
  ~TwoLevels();
  TwoLevels(const TwoLevels&) = delete;
  TwoLevels& operator=(const TwoLevels&) = delete;

  std::vector<float> reduce(std::span<const float> values, int bits);
  std::vector<float> gather(std::span<const float> part, int bits);
  std::vector<float> second(std::span<const float> own);

  /// Returns the bytes that this rank has made for others and itself: in its node, and between
  /// nodes.
  std::int64_t near_bytes() const { return near_bytes_; }
  std::int64_t far_bytes() const { return far_bytes_; }

 private:
  std::vector<float> exchanged_sum(const std::vector<std::vector<float>>& parts, int bits,
                                   MPI_Comm comm, std::int64_t& bytes) const;

  std::int64_t block_;
  int ranks_ = 1;
  int near_ranks_ = 1;
  MPI_Comm near_ = MPI_COMM_NULL;    ///< of a node
  MPI_Comm across_ = MPI_COMM_NULL;  ///< of one place of every node
  std::int64_t near_bytes_ = 0;
  std::int64_t far_bytes_ = 0;
};

struct TwoHopRun {
  int near = 0;  ///< 0: half of the processes, two nodes
  std::int64_t elements = 1 << 16;
  std::int64_t block = 256;
  int repeat = 5;
  bool json = false;
};

/// Runs the collectives above and prints a line of each: bytes, times, errors beside their bounds.
/// Returns false if
///   - an unquantised one differs in a bit from the library's own flat collective (values are
///     multiples of 2^-12 below 1, so every order of sums gives the same floats),
///   - a quantised one differs in a bit from collective::two_hop_sum or dequantize(quantize()), or
///     is off by more than the bound, or sends other than quantized_bytes().
/// All processes together.
bool run_two_hop(const TwoHopRun& run);

}  // namespace orrery::mpi
