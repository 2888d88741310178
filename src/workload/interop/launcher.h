// SPDX-License-Identifier: Apache-2.0
/// The launcher's part of a launch line. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/interop/interop.h"

namespace orrery::interop {

struct LaunchLine {
  std::int64_t devices = 0;            ///< 0 when no launcher states it
  std::string program{};               ///< the training script's file name
  std::vector<std::string> arguments;  ///< of the training script
  std::vector<std::string> places;     ///< of the arguments; empty = unknown
};

/// Splits at the first word that ends in .py. Devices: torchrun's --nnodes x --nproc-per-node,
/// DeepSpeed's --num_nodes x --num_gpus, else srun's --nodes x --ntasks-per-node or --ntasks, else
/// mpirun's -np. Other launcher flags say where processes run, which machine files state, and are
/// ignored. Mistakes: counts that are no numbers; words that are neither a launcher nor flags.
/// Counts that only a cluster knows (`$SLURM_NNODES`) are mistakes unless `devices`
/// is not 0: the user says how many.
Result<LaunchLine> split_launch_line(const LaunchWords& line, std::int64_t devices);

}  // namespace orrery::interop
