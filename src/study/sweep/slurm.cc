// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/process.h"

namespace orrery::sweep {
namespace {

constexpr Duration kSlurmPatience{600};  // with a scheduler that is busy

}  // namespace

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./+=,:@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) {
    return text;
  }
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return word += "'";
}

std::string slurm_script(const SlurmJob& job) {
  const std::string threads =
      job.threads.empty() ? "\"${SLURM_CPUS_PER_TASK:-1}\"" : shell_word(job.threads);
  return fmt::format(
      "#!/bin/sh\n"
      "#SBATCH --job-name=orrery-sweep\n"
      "#SBATCH --array=0-{}\n"
      "{}"
      "# Task k runs points k, k + {}, ... of the study; started again it goes on where it was.\n"
      "exec {} sweep {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" \\\n"
      "  --store {}.shard\"$SLURM_ARRAY_TASK_ID\" --threads {}\n"
      "# Once all are done:\n"
      "#   {}\n",
      job.tasks - 1, job.options.empty() ? "" : "#SBATCH " + job.options + "\n", job.tasks,
      shell_word(job.program), shell_word(job.study), job.tasks, shell_word(job.store), threads,
      merge_command(job));
}

std::string merge_command(const SlurmJob& job) {
  return fmt::format("{} sweep --merge {}.shard* --store {}", shell_word(job.program),
                     shell_word(job.store), shell_word(job.store));
}

Result<std::string> submit(const std::string& script) {
  if (find_program("sbatch").empty()) {
    return std::string();
  }
  return run_process({"sbatch", script}, {.limit = kSlurmPatience})
      .and_then([&](const ProcessRun& run) -> Result<std::string> {
        std::string answer = run.output + run.errors;
        if (run.status == 0) {
          return answer;
        }
        return fail(Error(Mistake{"sbatch", {}, {}, "refused " + script + ": " + answer}));
      });
}

}  // namespace orrery::sweep
