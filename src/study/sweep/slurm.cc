// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace orrery::sweep {
namespace {

constexpr int kNoCommand = 127;  // what a shell says to a command that it does not find

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
  const std::string command = "sbatch " + shell_word(script) + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return fail("cannot start a shell for sbatch");
  }
  std::string answer;
  std::array<char, 256> piece{};
  while (std::fgets(piece.data(), static_cast<int>(piece.size()), pipe) != nullptr) {
    answer += piece.data();
  }
  const int raw = pclose(pipe);
  if (raw == 0) {
    return answer;
  }
  if ((raw >> 8) == kNoCommand) {
    return std::string();
  }
  return fail(Error(Mistake{"sbatch", {}, {}, "refused " + script + ": " + answer}));
}

}  // namespace orrery::sweep
