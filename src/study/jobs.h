// SPDX-License-Identifier: Apache-2.0
/// Several jobs on one machine, and how much they slow each other down.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "simulate/simulate.h"

namespace orrery::study {

/// Says which of the free devices a job gets. A node is a block of the innermost dimension.
enum class Placement : std::uint8_t { packed, spread, random, rail_aligned };
constexpr auto named_values(Placement) {
  return std::to_array<Named<Placement>>({
      {Placement::packed, "packed", "the first free devices: node by node"},
      {Placement::spread, "spread", "the first free device of each node in turn"},
      {Placement::random, "random", "any free devices, in any order, by the seed"},
      {Placement::rail_aligned, "rail_aligned",
       "devices of equal number in their nodes (a rail) first, then the next number"},
  });
}

struct Job {
  std::string name;
  graph::Workload workload;
  collective::AlgorithmChoice algorithms{};
  Placement placement = Placement::packed;
  std::vector<std::int64_t> ranks{};  ///< devices by rank, if they are stated
  Time start{0};
};

/// A jobs file (docs/models/jobs.md).
struct JobsFile {
  std::vector<Job> jobs;
  std::uint64_t seed = 0;
};

/// Loads the models, plans and traces that the file names, for the machine. Mistakes: those of the
/// file and of what it names.
Result<JobsFile> load_jobs(const std::string& file, const machine::Machine& machine);

struct JobResult {
  std::string name;
  std::vector<std::int64_t> ranks;  ///< devices by rank
  Time start{0};
  Time finish{0};
  Time alone{0};        ///< takes so long on the same devices without the others
  double slowdown = 1;  ///< (finish - start) / alone
};

struct JobsRun {
  machine::Machine machine;
  std::int64_t devices = 0;
  simulate::NetworkModel network = simulate::NetworkModel::flow;
  std::vector<JobResult> jobs{};
  Time end{0};
  std::uint64_t events = 0;  ///< of the run together
};

/// Returns the devices of the jobs in the order of the file. Mistakes: too few devices; stated ones
/// that there are not or that another job has.
Result<std::vector<std::vector<std::int64_t>>> place(const JobsFile& file, std::int64_t devices,
                                                     std::int64_t node);

/// Runs the jobs together, and each alone where it was placed. `devices` 0: as many whole nodes as
/// the jobs need. With `faults` they strike both. Mistakes: those of place(), compose() and
/// simulate().
Result<JobsRun> run_jobs(const JobsFile& file, const machine::Machine& machine,
                         std::int64_t devices, const simulate::SimulateOptions& options);

}  // namespace orrery::study
