// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::sweep {
namespace {

using testing::HasSubstr;

TEST(Slurm, TaskKOfNRunsShardKOfN) {
  const SlurmJob job{.program = "/opt/orrery",
                     .study = "my study.yaml",
                     .store = "s.db",
                     .tasks = 16,
                     .threads = "",
                     .options = "--time=1:00:00"};
  const std::string script = slurm_script(job);
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=0-15\n#SBATCH --time=1:00:00\n"));
  EXPECT_THAT(script, HasSubstr("exec /opt/orrery sweep 'my study.yaml' --shard "
                                "\"$SLURM_ARRAY_TASK_ID/16\""));
  EXPECT_THAT(script, HasSubstr("--threads \"${SLURM_CPUS_PER_TASK:-1}\""));
  EXPECT_EQ(merge_command(job), "/opt/orrery sweep --merge s.db.shard* --store s.db");
}

TEST(Slurm, AShellTakesWordsAsTheyStand) {
  EXPECT_EQ(shell_word("a-b_c/d.e=f"), "a-b_c/d.e=f");
  EXPECT_EQ(shell_word("it's $x"), "'it'\\''s $x'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace orrery::sweep
