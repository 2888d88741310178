// SPDX-License-Identifier: Apache-2.0
/// A study as a Slurm job array: task k of n runs shard k/n into a store of its own.
#pragma once

#include <string>

#include "base/result.h"

namespace orrery::sweep {

struct SlurmJob {
  std::string program;  ///< the command, as the nodes find it
  std::string study;
  std::string store;
  std::size_t tasks = 1;
  std::string threads;  ///< of each task; "" = Slurm's --cpus-per-task, else one
  std::string options;  ///< of sbatch, as one line: "--partition=cpu --time=1:00:00"
};

/// Returns the text of the batch script.
std::string slurm_script(const SlurmJob& job);

/// Returns "orrery sweep --merge s.db.shard* --store s.db".
std::string merge_command(const SlurmJob& job);

/// Gives the script to sbatch; its answer ("Submitted batch job 7"). Nothing where there is no
/// sbatch. Mistakes: sbatch refuses.
Result<std::string> submit(const std::string& script);

/// Returns a word that a shell takes as it stands.
std::string shell_word(const std::string& text);

}  // namespace orrery::sweep
