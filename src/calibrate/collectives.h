// SPDX-License-Identifier: Apache-2.0
/// Measured collectives -> the protocols of a machine's network dimensions (topology/dimension.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "collective/cost.h"
#include "machine/machine.h"

namespace orrery::calibrate {

struct CollectiveMeasurement {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t members = 2;
  /// Members in each coordinate of the outermost dimension; 0: packed, innermost first.
  std::int64_t per_node = 0;
  Bytes bytes{0};  ///< as nccl-tests counts them
  Time time{0};

  friend bool operator==(const CollectiveMeasurement&, const CollectiveMeasurement&) = default;
};

/// Reads the output of nccl-tests (all_reduce_perf and so on; several runs one after the other) or
/// CSV. Of nccl-tests it takes the out-of-place time, ranks and nodes from the "# Rank" lines, and
/// the collective from the line "# Collective test starting: NAME_perf", else from the file's name;
/// a row of wrong results (#wrong) is a mistake. CSV has the columns collective, n_gpus, bytes and
/// time_us (or latency_us, time_us_median), gpus_per_node if there are several nodes; other columns
/// are not used. Mistakes, at most 20: with their lines.
Result<std::vector<CollectiveMeasurement>> read_collectives(const std::string& text,
                                                            const std::string& file);
Result<std::vector<CollectiveMeasurement>> load_collectives(const std::string& file);

/// Returns where the group of a measurement lies; empty when the machine has no such group.
std::vector<collective::Extent> group_of(const CollectiveMeasurement& measured,
                                         const machine::Machine& machine);

/// Absolute relative errors of predictions.
struct CollectiveError {
  std::size_t points = 0;
  double median = 0;
  double mean = 0;
  double largest = 0;
};
CollectiveError collective_error(const std::vector<CollectiveMeasurement>& measurements,
                                 const machine::Machine& machine);

/// One list of protocols before and after.
struct ProtocolFit {
  std::string name;  ///< dotted: "network.nvlink.protocols"
  std::vector<topology::Protocol> before;
  std::vector<topology::Protocol> after;
};

struct CollectiveFit {
  machine::Machine machine;
  std::vector<ProtocolFit> fits;
  CollectiveError before;
  CollectiveError after;
  CollectiveError held_out;  ///< of the fifth that no fit used; no points when there are few
  std::vector<std::string> warnings;  ///< too few points for the coefficients that were fitted
};

/// Fits launch, step latency, efficiency and local copy of the protocols of every dimension that
/// the measurements reach, innermost first: `protocols` and `in_switch` from rings and trees,
/// `exchange` (if the machine has it) from all_to_all and send_recv. Coefficients that are 0 in the
/// machine stay 0; a dimension without protocols starts from LL, LL128 and Simple.
///
/// The loss is the mean absolute log error over one point per kind, group and half octave of size
/// (the median of what was measured there), so that dense sweeps do not outvote sparse ones; an
/// error counts at most a factor of e. From 50 such points on, the fit is made once more without a
/// fifth of them, chosen by a hash, to tell the error of sizes that were not measured. Results are
/// rounded to three digits. Deterministic.
///
/// Mistakes: measurements of groups that the machine does not have; times in which its links, half
/// as fast again as stated (in-switch reduction), cannot move the bytes.
Result<CollectiveFit> calibrate_collectives(const machine::Machine& machine,
                                            const std::vector<CollectiveMeasurement>& measurements,
                                            const std::string& source);

}  // namespace orrery::calibrate
