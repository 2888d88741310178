// SPDX-License-Identifier: Apache-2.0
/// orrery import and export of engines: launch lines and their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Engines, LaunchLinesBecomeEngines) {
  const Outcome run = orrery(
      "import vllm -- vllm serve meta-llama/Llama-3.1-8B -tp 2 --max-num-seqs=64 "
      "--no-enable-prefix-caching --kv-cache-dtype fp8 --api-key x");
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* line :
       {"tp: 2 ", "max_num_seqs: 64 ", "prefix: false", "kv: fp8", "--api-key"}) {
    EXPECT_THAT(run.out, HasSubstr(line));
  }
  // What only a checkpoint can say is not dropped silently, and left to it.
  for (const char* flag : {"--quantization awq", "-q awq"}) {
    const Outcome awq = orrery(std::string("import vllm -- vllm serve m ") + flag);
    EXPECT_THAT(awq.out, HasSubstr("# --quantization awq: left to the checkpoint"));
    EXPECT_THAT(awq.out, ::testing::Not(HasSubstr("precision:")));
  }
  EXPECT_THAT(orrery("import vllm -- vllm serve m -q fp8").out, HasSubstr("weights: fp8"));
  for (const char* line : {"hello world", "vllm bench serve --model m"}) {
    const Outcome none = orrery(std::string("import vllm -- ") + line);
    EXPECT_EQ(none.status, 2) << line;
    EXPECT_THAT(none.err, HasSubstr("vllm serve MODEL"));
  }
  // A shell reads the line: what is no plain word is quoted.
  EXPECT_THAT(orrery("export vllm --engine vllm --model 'x; rm -rf ~'").out,
              HasSubstr("vllm serve 'x; rm"));
  const Outcome wrong = orrery("import vllm -- vllm serve m --max-num-seqs many");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--max-num-seqs: found 'many'"));
  // A range is the flag's mistake too, not that of a line which nobody has written.
  EXPECT_EQ(orrery("import vllm -- vllm serve m -tp 0 --gpu-memory-utilization 1.5").err,
            "--tp: found '0', expected a whole number from 1 to 1073741824\n"
            "--gpu-memory-utilization: found '1.5', expected a share above 0, at most 1\n");
  EXPECT_EQ(orrery("import vllm -- vllm serve m -tp").err,
            "-tp: missing; expected a value after it\n");
  EXPECT_THAT(orrery("import vllm -- vllm serve m --tensor-parallel-sze 4").out,
              HasSubstr("# --tensor-parallel-sze: left out: no field of an engine says it (did you "
                        "mean '--tensor-parallel-size'?)"));
}

TEST(Engines, LaunchLinesOfEnginesAreFilesAndJsonToo) {
  const Folder folder;
  const std::string line = folder.write("l.sh", "vllm serve m \\\n  -tp 4  # four\n");
  const Outcome run = orrery("import vllm --json " + line);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("parallel").at("tp"), 4);
  EXPECT_EQ(run.out, orrery("import vllm --json -- vllm serve m -tp 4").out);
  // What is about plans is not silently passed over.
  EXPECT_EQ(orrery("import vllm --devices 3 --dp 2 -- vllm serve m").err,
            "--devices: is for plans; vllm gives an engine\n"
            "--dp: contradicts vllm, which wants no plan\n");
}

TEST(Engines, AnEnginesFileIsCheckedFieldByField) {
  const Folder folder;
  const std::string engine = folder.write("e.yaml",
                                          "parallel: {tp: 0, all_reduce: rng}\n"
                                          "cache:\n  memory_utilization: 1.5\n"
                                          "fleet: {most_replicas: 4}\n");
  const Outcome run =
      orrery("serve --model llama-3.1-8b --machine dgx-h100 --requests 5 --engine " + engine);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(
      run.err,
      AllOf(HasSubstr("e.yaml:1: parallel.tp: found '0', expected a whole number from 1"),
            HasSubstr("e.yaml:1: parallel.all_reduce: found 'rng', expected one of"),
            HasSubstr("(did you mean 'ring'?)"),
            HasSubstr("e.yaml:3: cache.memory_utilization: found '1.5', expected a share"),
            HasSubstr("e.yaml:1: fleet.target_requests: found '0', expected a number from 1")));
}

TEST(Engines, EnginesBecomeLaunchLines) {
  const Folder folder;
  const std::string file =
      folder.write("e.yaml",
                   "engine: vllm@0.20\nparallel: {tp: 4}\ncache: {prefix: false}\n"
                   "precision: {kv: fp8}\nhost: {step: 1 ms}\n");
  const Outcome run = orrery("export vllm --model m --engine " + file);
  ASSERT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out,
            "# host.step: no flag states it\nvllm serve m --kv-cache-dtype fp8 "
            "--tensor-parallel-size 4 --no-enable-prefix-caching\n");
  EXPECT_THAT(orrery("export vllm --strict --engine " + file).err, HasSubstr("host.step"));
  EXPECT_THAT(orrery("export vllm").err, HasSubstr("--engine: missing"));
  EXPECT_EQ(orrery("export vllm --engine vllm --devices 8 --tp 4").err,
            "--devices: is for plans; vllm takes an engine\n"
            "--tp: contradicts vllm, which wants no plan\n");
  EXPECT_THAT(orrery("export").err,
              HasSubstr("torchtitan, deepspeed, chakra, mpi, vllm, sglang, trtllm"));
}

}  // namespace
}  // namespace orrery::testing
