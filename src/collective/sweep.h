// SPDX-License-Identifier: Apache-2.0
/// One collective over a range of sizes, as the table that nccl-tests prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "machine/machine.h"

namespace orrery::collective {

struct SweepOptions {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t devices = 1;
  std::int64_t stride = 1;  ///< ranks between members
  Bytes smallest{8};
  Bytes largest{std::int64_t{8} << 30};
  double factor = 2;  ///< from one size to the next
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  /// Parts of themis and hierarchical that flow through the dimensions one after the other. 0:
  /// kDefaultChunks or fewer of themis, hierarchical in one piece.
  std::int64_t chunks = 0;
};

struct SweepRow {
  Bytes bytes{0};  ///< as nccl-tests counts them, see Node::bytes
  Time time{0};
  double algbw = 0;  ///< bytes / time, in bytes per second
  double busbw = 0;  ///< algbw * bus_factor
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::string protocol;  ///< "" when the dimension lists none
};

/// A collective by its name here or in nccl-tests: "all_to_all", "alltoall", "send_recv",
/// "sendrecv".
std::optional<graph::CollectiveKind> collective_named(std::string_view name);
/// An algorithm by its name or NCCL's: tree, nvls, pxn.
std::optional<CollectiveAlgorithm> algorithm_named(std::string_view name);
/// Returns all that it takes: "auto, ring, ..., tree, nvls, pxn".
std::string algorithm_names();

/// Bus bandwidth over algorithm bandwidth: what a rank must send or receive per byte of the buffer
/// (PERFORMANCE.md of NVIDIA/nccl-tests). all_reduce 2(n-1)/n; all_gather, reduce_scatter and
/// all_to_all (n-1)/n; broadcast and send_recv 1.
double bus_factor(graph::CollectiveKind kind, std::int64_t members);

/// A SweepCase is what a sweep runs on.
struct SweepCase {
  machine::Machine machine;  ///< of exactly the devices asked for
  std::vector<Extent> extents;
  std::vector<Bytes> sizes;  ///< from `smallest` to at most `largest`
};
/// Mistakes (fields as the flags of `orrery collective`): devices that the machine does not have,
/// an algorithm that does not do this collective there or is not cut into chunks, sizes that are
/// not ascending.
Result<SweepCase> sweep_case(const machine::Machine& machine, const SweepOptions& options);

/// Returns the row of one size that these phases have moved in `time`.
SweepRow sweep_row(const SweepCase& on, const SweepOptions& options, Bytes bytes,
                   const std::vector<CollectivePhase>& phases, Time time);

/// Prices every size by the closed forms of cost.h. Mistakes: those of sweep_case.
Result<std::vector<SweepRow>> sweep_collective(const machine::Machine& machine,
                                               const SweepOptions& options);

}  // namespace orrery::collective
