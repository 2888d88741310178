// SPDX-License-Identifier: Apache-2.0
/// Measurements that a program of a step makes of itself -> a machine file on which that step is
/// simulated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "calibrate/collectives.h"
#include "calibrate/gemm.h"
#include "calibrate/kernel_fit.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::calibrate {

/// One message from a rank to another.
struct MessageMeasurement {
  Bytes bytes{0};
  Time time{0};
};

struct ReplayTable {
  Time step{0};  ///< median
  GemmTable products;
  std::vector<KernelMeasurement> streams;
  std::vector<CollectiveMeasurement> collectives;
  std::vector<std::int64_t> counts;  ///< of these in a step, over all ranks
  std::vector<MessageMeasurement> messages;
};

/// Reads the rows of emit/runtime/measure.h. Mistakes, at most 20: columns that are missing, rows
/// of another sort, numbers that are not above 0; no step.
Result<ReplayTable> read_replay(const CsvTable& csv);

/// One sort of measurement: absolute relative errors of the machine's predictions of each row.
struct ReplayClass {
  std::string_view name;
  std::size_t rows = 0;
  double before = 0;  ///< median
  double after = 0;
};

struct ReplayFit {
  machine::Machine machine;
  Time measured{0};  ///< the step
  Time before{0};    ///< the step, simulated on the machine as it was given
  Time after{0};     ///< and on the fitted one
  std::vector<ReplayClass> classes;
  std::vector<std::string> warnings;
};

/// Fits products (gemm.h), kernels that stream (kernel_fit.h), collectives (collectives.h) and, of
/// the innermost dimension, message_overhead and send_efficiency:
///
///   time of a message = latency + message_overhead + bytes / (bandwidth send_efficiency)
///
/// with the least mean absolute log error, in which a product or stream counts by its time of the
/// step and their sum, too; a sort without rows stays as it is. The step itself is never fitted: it
/// is simulated before and after, on as many devices as the workload has ranks.
///
/// `executed`: what the program does (emit::executed). Mistakes: those of each fit, of a machine
/// that has not so many devices, of the simulation.
Result<ReplayFit> calibrate_replay(const machine::Machine& machine, const graph::Workload& executed,
                                   const ReplayTable& measured, const std::string& source);

}  // namespace orrery::calibrate
