// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "../workload/chakra/traces.h"
#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kStep =
    "export chakra --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 8 ";

TEST(ExportChakra, EveryRankHasAFileAndStagesShareTheirProgram) {
  const Folder folder;
  const Outcome run = orrery(std::string(kStep) + "--json --output " + (folder / "new/t"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report["ranks"], 8);
  EXPECT_EQ(report["programs"], 2);
  EXPECT_EQ(report["groups"], 4 * 4);  // pairs on tp, dp, pp (gradient norm), tied embedding
  for (int rank = 0; rank < 8; ++rank) {
    // The length of the GlobalMetadata, its version.
    EXPECT_EQ(content(folder / ("new/t." + std::to_string(rank) + ".et")).substr(0, 8),
              "\x07\x0a\x05"
              "0.0.4");
  }
  const auto groups = nlohmann::json::parse(content(folder / "new/t.groups.json"));
  EXPECT_EQ(groups["1"], (std::vector<int>{0, 1}));
}

TEST(ExportChakra, WhatIsMissingIsSaidAtOnce) {
  const Outcome run = orrery("export chakra --most-files many");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("--model: chakra needs one"));
  EXPECT_THAT(run.err, HasSubstr("--output: chakra needs one"));
  EXPECT_THAT(run.err, HasSubstr("--most-files: found 'many'"));
  EXPECT_THAT(orrery("export megatron --output x").err, HasSubstr("--output: is for chakra"));
}

TEST(ExportChakra, MoreFilesThanAskedForAreRefused) {
  const Folder folder;
  const Outcome run = orrery(std::string(kStep) + "--most-files 7 --output " + (folder / "t"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--most-files: found '7', expected at least 8"));
  EXPECT_FALSE(std::filesystem::exists(folder / "t.0.et"));
}

/// Seconds of the step; NaN when it does not run.
double step_time(const std::string& arguments) {
  const Outcome run = orrery("simulate --json " + arguments);
  EXPECT_EQ(run.status, 0) << arguments << "\n" << run.err;
  return run.status == 0 ? nlohmann::json::parse(run.out)["step_time_s"].get<double>()
                         : std::numeric_limits<double>::quiet_NaN();
}

struct Step {
  std::string machine;
  std::string plan;
};
// NOLINTNEXTLINE(readability-identifier-naming): googletest's name
void PrintTo(const Step& step, std::ostream* out) {
  *out << step.plan << " on " << step.machine;
}

class ReadBack : public ::testing::TestWithParam<Step> {};

TEST_P(ReadBack, AStepTakesAsLongButForRoundingToMicroseconds) {
  // The slowdown of kernels beside communication is part of the trace: without it the first of
  // these was 1.1 % short.
  const std::string machine = " --machine " + GetParam().machine;
  const Folder folder;
  const Outcome written =
      orrery("export chakra " + GetParam().plan + machine + " --output " + (folder / "t"));
  ASSERT_EQ(written.status, 0) << written.err;
  const double own = step_time(GetParam().plan + machine + " --allow-oom");
  const double read =
      step_time("--chakra " + (folder / "t") + machine + " --groups " + (folder / "t.groups.json"));
  EXPECT_NEAR(read / own, 1, 0.001) << own << " s, read back " << read << " s";
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ReadBack,
    ::testing::Values(
        Step{"dgx-h100",
             "--model llama-3-8b --tp 2 --dp 2 --cp 4 --attention flash --recompute full"
             " --global-batch 4 --sequence 32768"},
        Step{"dgx-h100",
             "--model llama-3-8b --tp 4 --pp 2 --dp 2 --global-batch 16 --sequence 2048"},
        Step{"dgx-a100-80g",
             "--model llama-3-8b --tp 2 --dp 8 --zero 3 --overlap-grad-reduce"
             " --overlap-param-gather --global-batch 16 --sequence 2048"},
        Step{"dgx-a100-80g",
             "--model gpt-22b --tp 4 --pp 4 --schedule interleaved --chunks 2 --overlap-p2p"
             " --global-batch 16"},
        Step{"dgx-h100",
             "--model mixtral-8x7b --tp 2 --dp 8 --ep 4 --sequence-parallel --global-batch 16"
             " --sequence 2048"},
        Step{"dgx-b200",
             "--model qwen3-30b-a3b --pp 4 --dp 4 --ep 2 --schedule dualpipe --overlap-ep"
             " --global-batch 64 --sequence 2048"},
        Step{"tpu-v4",
             "--model llama-3-8b --tp 4 --dp 4 --cp 2 --cp-exchange all_gather --attention flash"
             " --recompute full --global-batch 8 --sequence 4096"},
        Step{"dgx-h100",
             "--model llama-3-8b --dp 8 --zero 2 --offload-activations 0.5 --offload-optimizer cpu"
             " --global-batch 16 --sequence 2048"}));

TEST(ExportChakra, TheExampleRunsItsTracesOnAstra) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/chakra_export/run.sh >" + out + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << content(out);
  const std::string text = content(out);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(text, HasSubstr("sys[" + std::to_string(rank) + "] finished, "));
  }
  EXPECT_THAT(text, HasSubstr("9032 nodes as 2258 of 2 programs"));
}

/// A kernel of so many microseconds that reads and writes tensors: name, bytes, name, bytes ...
chakra::ProtoNode kernel(std::uint64_t id, std::uint64_t microseconds,
                         std::initializer_list<std::uint64_t> after,
                         const std::vector<std::string>& reads,
                         const std::vector<std::string>& writes) {
  chakra::ProtoNode node = chakra::proto_node(id, ChakraProtoMsg::COMP_NODE, after);
  node.set_duration_micros(microseconds);
  const auto list = [&](const char* name, const std::vector<std::string>& texts) {
    auto* strings = chakra::attribute(node, name)->mutable_string_list();
    for (const std::string& text : texts) {
      strings->add_values(text);
    }
  };
  list("inputs", reads);
  list("outputs", writes);
  return node;
}

/// Writes a step of two ranks: w and x make a in 2 us, w and a make b in 3 us, b is summed over the
/// ranks, b makes w in 1 us.
std::string write_step(const Folder& folder) {
  std::vector<chakra::ProtoNode> nodes{
      kernel(1, 2, {}, {"w", "1000", "x", "300"}, {"a", "4000"}),
      kernel(2, 3, {1}, {"w", "1000", "a", "4000"}, {"b", "2000"}),
      chakra::all_reduce(3, 2000),
      kernel(4, 1, {3}, {"b", "2000"}, {}),
      kernel(5, 1, {4}, {}, {"w", "1000"}),
  };
  nodes[2].add_data_deps(2);
  folder.write("step.all.et", chakra::et(nodes));
  return "simulate --chakra " + (folder / "step") + " --machine dgx-a100-80g --devices 2 ";
}

TEST(SimulateChakra, TensorsTakeMemoryWhereSomebodyAsks) {
  const Folder folder;
  const std::string step = write_step(folder);
  const Outcome run = orrery(step + "--memory --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  // From 0: w 1000 (read first, written last: all the time), x 300, a 4000. From 2 us: w, a, and
  // b 2000. Then w and b, at the end w.
  const auto& memory = report["memory_bytes"];
  ASSERT_EQ(memory.size(), 1U);  // the ranks mirror each other
  EXPECT_EQ(memory[0]["rank"], 0);
  EXPECT_EQ(memory[0]["tensors"], 7000);
  EXPECT_EQ(memory[0]["total"], 7000);
  EXPECT_DOUBLE_EQ(memory[0]["moment_s"].get<double>(), 2e-6);
  EXPECT_EQ(memory[0]["fits"], true);
  EXPECT_THAT(orrery(step + "--memory").out, HasSubstr("Memory per device in GiB"));
  const Outcome quiet = orrery(step + "--json");
  EXPECT_FALSE(nlohmann::json::parse(quiet.out).contains("memory_bytes"));
  EXPECT_EQ(nlohmann::json::parse(quiet.out)["step_time_s"], report["step_time_s"]);
}

TEST(SimulateChakra, TheTraceCountsTheBytesOfTensors) {
  const Folder folder;
  const Outcome run = orrery(write_step(folder) + "--trace " + (folder / "out.json"));
  ASSERT_EQ(run.status, 0) << run.err;
  std::vector<std::int64_t> bytes;
  const auto trace = nlohmann::json::parse(content(folder / "out.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "memory") {
      bytes.push_back(event["args"]["tensors"]);
    }
  }
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{5300, 7000, 3000, 1000}));
}

/// Kernels one after the other, on which every timeline agrees. The k-th takes 1 + (k + 1) % 5 us,
/// writes tensor k of 100 (1 + 7 k % 13) bytes and reads k - 1 and (k - 1) / 2.
std::string write_chain(const Folder& folder) {
  std::vector<chakra::ProtoNode> nodes;
  const auto add = [](int k, std::vector<std::string>& list) {
    list.push_back("t" + std::to_string(k));
    list.push_back(std::to_string(100 * (1 + 7 * k % 13)));
  };
  for (int k = 0; k < 40; ++k) {
    const auto id = static_cast<std::uint64_t>(k) + 1;
    std::vector<std::string> reads{"input", "500"};
    std::vector<std::string> writes;
    if (k > 0) {
      reads.clear();
      add(k - 1, reads);
      add((k - 1) / 2, reads);
    }
    add(k, writes);
    nodes.push_back(kernel(id, 1 + id % 5, {}, reads, writes));
    chakra::attribute(nodes.back(), "num_ops")->set_int64_val(1);
    chakra::attribute(nodes.back(), "tensor_size")->set_uint64_val(1);
    chakra::attribute(nodes.back(), "is_cpu_op")->set_bool_val(false);
    if (k > 0) {
      nodes.back().add_data_deps(id - 1);
    }
  }
  folder.write("chain.all.et", chakra::et(nodes));
  return folder / "chain";
}

TEST(SimulateChakra, TheEngineOfAstraSimHoldsTheSameBytesWhereTimesAreTheSame) {
  const Folder folder;
  const std::string chain = write_chain(folder);
  const std::string files =
      " --system-configuration " +
      folder.write("system.json", R"({"scheduling-policy": "LIFO", "local-mem-bw": 50,
        "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1, "endpoint-delay": 10,
        "replay-only": 1, "track-local-mem": 1, "all-reduce-implementation": ["ring"],
        "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
        "all-to-all-implementation": ["ring"], "collective-optimization": "localBWAware"})") +
      " --network-configuration " +
      folder.write("network.yml",
                   "topology: [Ring]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [0]\n") +
      " --remote-memory-configuration " +
      folder.write("memory.json", R"({"memory-type": "NO_MEMORY_EXPANSION"})");
  const Outcome loop =
      orrery("simulate --chakra " + chain + " --machine dgx-a100-80g --devices 2 --memory --json");
  ASSERT_EQ(loop.status, 0) << loop.err;
  const auto peak = nlohmann::json::parse(loop.out)["memory_bytes"][0];
  EXPECT_GT(peak["moment_s"].get<double>(), 0);
  const Outcome engine = orrery("astra --workload-configuration " + chain + files);
  ASSERT_EQ(engine.status, 0) << engine.err;
  EXPECT_THAT(engine.out,
              HasSubstr(fmt::format("sys[0] peak local memory, {} bytes at {:.0f} cycles.",
                                    peak["total"].get<std::int64_t>(),
                                    1e9 * peak["moment_s"].get<double>())));
}

TEST(SimulateChakra, TensorsBeyondTheCapacityAreSaidNotRefused) {
  const Folder folder;
  folder.write("step.all.et",
               chakra::et({kernel(1, 2, {}, {"w", std::to_string(100LL << 30)}, {})}));
  const Outcome run = orrery("simulate --chakra " + (folder / "step") +
                             " --machine dgx-a100-80g --devices 1 --memory");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("capacity 80.00 GiB"));
  EXPECT_THAT(run.out, HasSubstr("100.00   125 %"));
  EXPECT_THAT(run.out, HasSubstr("DOES NOT FIT"));
}

TEST(SimulateChakra, TracesWithoutTensorsPrintNoMemory) {
  const Folder folder;
  folder.write("step.all.et", chakra::et({chakra::compute(1)}));
  const std::string step =
      "simulate --chakra " + (folder / "step") + " --machine dgx-a100-80g --devices 2 --memory ";
  const Outcome json = orrery(step + "--json");
  ASSERT_EQ(json.status, 0) << json.err;
  EXPECT_FALSE(nlohmann::json::parse(json.out).contains("memory_bytes"));
  EXPECT_THAT(orrery(step).out, ::testing::Not(HasSubstr("Memory")));
}

TEST(SimulateChakra, FusionSaysWhatItRefuses) {
  const Folder folder;
  const Outcome made = orrery(
      "export chakra --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --global-batch 2 "
      "--sequence-parallel false --output " +
      (folder / "t"));
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string step = "simulate --machine dgx-a100-80g --chakra " + (folder / "t") +
                           " --groups " + (folder / "t.groups.json");
  const Outcome fused = orrery(step + " --fuse");
  ASSERT_EQ(fused.status, 0) << fused.err;
  // Between the sum and the message of a stage stands a residual, of which a trace says a time.
  EXPECT_THAT(fused.out, HasSubstr("Sums that leave in messages"));
  EXPECT_THAT(fused.out, HasSubstr("not, "));
  EXPECT_THAT(orrery(step).out, ::testing::Not(HasSubstr("Sums that leave")));
}

TEST(SimulateChakra, WrongTensorsAreNamedOnlyWhereTheyAreRead) {
  const Folder folder;
  folder.write("step.all.et", chakra::et({kernel(1, 2, {}, {"w", "many"}, {})}));
  const std::string step =
      "simulate --chakra " + (folder / "step") + " --machine dgx-a100-80g --devices 2 ";
  EXPECT_EQ(orrery(step).status, 0);
  const Outcome run = orrery(step + "--memory");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("node 1 'n1': inputs: found 'many'"));
  EXPECT_THAT(orrery("simulate --memory").err, HasSubstr("--memory: goes with --chakra"));
}

}  // namespace
}  // namespace orrery::testing
