// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json spmd_json_of(const std::string& arguments) {
  const Outcome run = orrery("spmd " + arguments + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(Spmd, OptimumOfAFileAndOfItsModel) {
  const std::string file =
      std::string(ORRERY_SOURCE_DIR) + "/tests/planner/spmd/hidup/graph_Rmoe_8gpus_8layers.json";
  const auto of_file =
      spmd_json_of("--graph " + file + " --devices 8 --profile 64c8m --cost hidup");
  const auto of_model = spmd_json_of("--graph Rmoe --devices 8 --layers 8 --profile 64c8m");
  EXPECT_NEAR(of_file.at("optimum_s").get<double>(), 2.910879, 3e-6);
  EXPECT_EQ(of_file.at("optimum_s"), of_model.at("optimum_s"));
  EXPECT_EQ(of_file.at("stages"), 47);
  EXPECT_GT(of_file.at("communications"), 90);
  EXPECT_NEAR(of_model.at("strategies").at(3).at("time_s").get<double>(), 2.969231, 3e-6);
}

TEST(Spmd, DevicesOfTwoRatesShareUnevenly) {
  const std::string words = "--graph Rmoe --layers 2 --cost mixed --profile nvl8 --rates ";
  const auto mixed = spmd_json_of(words + "'12TFLOP/s*4,4 TFLOP/s*4'");
  ASSERT_EQ(mixed.at("shares").size(), 8U);
  EXPECT_GT(mixed.at("shares").at(0), mixed.at("shares").at(7));
  EXPECT_GT(mixed.at("optimum_s"), spmd_json_of(words + "'12TFLOP/s*8'").at("optimum_s"));
  EXPECT_LT(mixed.at("optimum_s"), spmd_json_of(words + "'4TFLOP/s*8'").at("optimum_s"));
  const Outcome wrong = orrery("spmd " + words + "'4TFLOP/s*3,x' --max-memory 1GiB");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("rates of 8 devices"), HasSubstr("found 'x'"),
                               HasSubstr("--max-memory")));
}

TEST(Spmd, ASavedStrategyCostsTheSameAndCanBeCostedElsewhere) {
  const Folder folder;
  const std::string file = folder / "strategy.json";
  const auto found = spmd_json_of("--graph Vmoe --profile 2m_10g --overlap both --save " + file);
  EXPECT_NEAR(found.at("optimum_s").get<double>(), 1.058995, 1e-6);
  const auto again =
      spmd_json_of("--graph Vmoe --profile 2m_10g --overlap both --strategy " + file);
  EXPECT_EQ(again.at("optimum_s"), found.at("optimum_s"));
  EXPECT_EQ(again.at("stages"), found.at("stages"));
  const auto elsewhere =
      spmd_json_of("--graph Vmoe --profile nvl8 --overlap both --strategy " + file);
  EXPECT_GE(elsewhere.at("optimum_s"),
            spmd_json_of("--graph Vmoe --profile nvl8 --overlap both").at("optimum_s"));
  const Outcome wrong = orrery("spmd --graph Vmoe --layers 4 --profile nvl8 --strategy " + file);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("stage "));
}

TEST(Spmd, TimeAgainstMemory) {
  const auto found =
      spmd_json_of("--graph Vmoe --layers 2 --profile 2m_10g --overlap both --frontier");
  const auto& frontier = found.at("frontier");
  ASSERT_GE(frontier.size(), 2U);
  EXPECT_EQ(frontier[0].at("time_s"), found.at("optimum_s"));
  for (std::size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_LT(frontier[i].at("memory_bytes"), frontier[i - 1].at("memory_bytes"));
    EXPECT_GT(frontier[i].at("time_s"), frontier[i - 1].at("time_s"));
  }
  EXPECT_EQ(orrery("spmd --graph Vmoe --profile nvl8 --frontier --max-memory 1GiB").status, 2);
}

TEST(Spmd, OwnCostAndALimitOfMemory) {
  const std::string on = "--graph Rmoe --cost orrery --machine dgx-h100";
  const auto free = spmd_json_of(on);
  const auto bytes = free.at("memory_bytes").get<std::int64_t>();
  const auto limited =
      spmd_json_of(on + " --max-memory " + std::to_string(bytes / 1000 * 994) + "B");
  EXPECT_LE(limited.at("memory_bytes").get<std::int64_t>(), bytes / 1000 * 994);
  EXPECT_GE(limited.at("optimum_s"), free.at("optimum_s"));
  EXPECT_LE(limited.at("bound_s"), limited.at("optimum_s"));
  EXPECT_GE(limited.at("gap"), 0);
  EXPECT_THAT(orrery("spmd " + on + " --max-memory 1GiB").err, HasSubstr("every program needs"));
}

TEST(Spmd, StrategiesRunOnTheSimulator) {
  const Folder folder;
  const std::string file = folder / "strategy.json";
  const std::string on = "--machine dgx-a100-80g --devices 16";
  const auto found =
      spmd_json_of("--graph Rmoe --layers 4 --cost orrery --save " + file + " " + on);
  const Outcome run =
      orrery("simulate --strategy " + file + " --graph Rmoe --layers 4 --json " + on);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), found.at("simulated_s"));
  // Kernels beside collectives.
  EXPECT_GT(found.at("simulated_s"), found.at("optimum_s"));
  for (const auto& other : found.at("strategies")) {
    EXPECT_GE(other.at("simulated_s"), other.at("time_s")) << other;
  }
  const Outcome wrong =
      orrery("simulate --strategy " + file + " --graph Rmoe --csv --tp 2 --model gpt2 " + on);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--model: contradicts"), HasSubstr("--csv: contradicts"),
                               HasSubstr("--tp")));
  EXPECT_THAT(orrery("simulate --graph Rmoe --model gpt2 --machine dgx-h100").err,
              HasSubstr("--strategy: missing"));
}

TEST(Spmd, StrategiesAreAFieldOfPlans) {
  const Folder folder;
  const std::string plan = folder / "plan.yaml";
  const std::string on = " --model llama-3-8b --machine dgx-h100";
  const auto found = spmd_json_of(
      "--graph llama-3-8b --devices 8 --batch 16 --sequence 1024 --cost orrery --machine dgx-h100 "
      "--save " +
      plan);
  const Outcome run = orrery("simulate --json --plan " + plan + on);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto figures = nlohmann::json::parse(run.out);
  const double step = found.at("simulated_s");
  EXPECT_EQ(figures.at("step_time_s"), step);
  EXPECT_DOUBLE_EQ(figures.at("tokens_per_s").get<double>(), 16 * 1024 / step);
  EXPECT_EQ(figures.at("plan").at("dp"), 8);
  // Beside a plan of Megatron's, on one simulator.
  const std::string other = folder / "other.yaml";
  std::ofstream(other) << "dp: 8\nglobal_batch: 16\nsequence: 1024\n";
  const Outcome both = orrery("compare --json " + plan + " " + other + on);
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr(figures.at("step_time_s").dump()));
  // Results of a sweep are known by what a strategy says, not by its file.
  const auto swept = [&](const std::string& vary) {
    const std::string study = folder / "study.yaml";
    std::ofstream(study) << "kind: simulate\nmodel: llama-3-8b\nmachine: dgx-h100\nplan: "
                            "{dp: 8, global_batch: 16, sequence: 1024, strategy: plan.json}\n"
                         << vary;
    const Outcome sweep = orrery("sweep " + study + " --store " + (folder / "runs.db"));
    return sweep.out + sweep.err;
  };
  EXPECT_THAT(swept(""), HasSubstr("1 points run, 0 known"));
  EXPECT_THAT(swept("vary: {plan.dp: [8]}\n"), HasSubstr("0 points run, 1 known"));
  spmd_json_of(
      "--graph llama-3-8b --devices 8 --batch 16 --sequence 1024 --cost orrery --machine dgx-h100 "
      "--fixed fsdp --save " +
      (folder / "plan.json"));
  EXPECT_THAT(swept("vary: {plan.global_batch: [16]}\n"), HasSubstr("1 points run, 0 known"));
  // What such a plan cannot be, and who cannot run it.
  EXPECT_THAT(
      orrery("simulate --tp 2 --zero 1 --plan " + plan + on).err,
      AllOf(HasSubstr("--tp"), HasSubstr("1, as it is beside a strategy"), HasSubstr("--zero")));
  EXPECT_THAT(orrery("estimate --plan " + plan + on).err, HasSubstr("strategy: found"));
  EXPECT_THAT(orrery("simulate --model gpt2-medium --machine dgx-h100 --plan " + plan).err,
              HasSubstr("one for the graph of gpt2-medium"));
  EXPECT_THAT(orrery("plan --devices 8 --plan " + plan + on).err, HasSubstr("strategy: found"));
  EXPECT_THAT(orrery("simulate --plan " + plan + " --fuse" + on).err, HasSubstr("--fuse"));
  EXPECT_THAT(
      orrery("spmd --graph llama-3-8b --layers 2 --cost orrery --machine dgx-h100 --save " + plan)
          .err,
      HasSubstr("all layers"));
}

TEST(Spmd, DecodersOfTheZooAreSavedAsGraphs) {
  const Folder folder;
  const std::string graph = folder / "graph.json";
  const std::string strategy = folder / "strategy.json";
  const std::string on = " --cost orrery --machine dgx-h100";
  const auto found =
      spmd_json_of("--graph llama-3-8b --layers 2 --batch 16 --sequence 1024 --save " + strategy +
                   " --save-graph " + graph + on);
  EXPECT_EQ(spmd_json_of("--graph " + graph + on).at("optimum_s"), found.at("optimum_s"));
  const Outcome run = orrery("simulate --strategy " + strategy + " --graph " + graph +
                             " --machine dgx-h100 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), found.at("simulated_s"));
  EXPECT_THAT(orrery("spmd --graph Rmoe --batch 8 --profile nvl8").err,
              HasSubstr("--batch: goes with"));
  EXPECT_THAT(orrery("spmd --graph deepseek-v4-flash --profile nvl8").err,
              HasSubstr("one residual stream"));
}

TEST(Spmd, HybridsAreSavedAsGraphsAndAsPlans) {
  const Folder folder;
  const std::string on = " --cost orrery --machine dgx-h100 --batch 16 --sequence 1024";
  const std::string graph = folder / "graph.json";
  const std::string plan = folder / "plan.yaml";
  const auto found =
      spmd_json_of("--graph nemotron-h-8b --save " + plan + " --save-graph " + graph + on);
  EXPECT_EQ(spmd_json_of("--graph " + graph + " --cost orrery --machine dgx-h100").at("optimum_s"),
            found.at("optimum_s"));
  const Outcome run =
      orrery("simulate --plan " + plan + " --model nemotron-h-8b --machine dgx-h100 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), found.at("simulated_s"));
  EXPECT_THAT(orrery("spmd --graph nemotron-h-8b --save " + (folder / "a.yaml") + " --save-graph " +
                     (folder / "a.json") + on)
                  .err,
              HasSubstr("another file; --save writes the strategy there"));
}

TEST(Spmd, MeshesOfTwoAxes) {
  const std::string on = " --cost orrery --machine dgx-h100 --batch 32 --sequence 1024 --layers 4";
  const auto mixtral = spmd_json_of("--model mixtral-8x7b --mesh 8x2" + on);
  const auto schema = nlohmann::json::parse(
      content(std::string(ORRERY_SOURCE_DIR) + "/docs/schema/spmd-mesh.json"));
  for (const auto& [key, value] : mixtral.items()) {
    EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  }
  EXPECT_EQ(schema.at("required").size(), mixtral.size());
  EXPECT_EQ(mixtral.at("n_devices"), 16);
  EXPECT_EQ(mixtral.at("optimum_s"), mixtral.at("simulated_s"));
  const auto& seconds = mixtral.at("communication_s");
  EXPECT_NEAR(mixtral.at("compute_s").get<double>() + mixtral.at("optimizer_s").get<double>() +
                  seconds.at("inner").get<double>() + seconds.at("outer").get<double>() +
                  seconds.at("all").get<double>(),
              mixtral.at("optimum_s").get<double>(), 1e-9);
  // A restriction is never faster.
  EXPECT_GE(
      spmd_json_of("--graph mixtral-8x7b --mesh 8x2 --fixed data_parallel" + on).at("optimum_s"),
      mixtral.at("optimum_s"));
  EXPECT_THAT(orrery("spmd --graph Rmoe --mesh 8 --cost orrery --machine dgx-h100").err,
              AllOf(HasSubstr("--mesh: found '8', expected two or three numbers"),
                    Not(HasSubstr("--devices"))));
  EXPECT_THAT(
      orrery("spmd --graph Rmoe --mesh 8x2 --profile nvl8 --overlap both --frontier").err,
      AllOf(HasSubstr("--profile: contradicts --mesh"), HasSubstr("goes with --cost orrery"),
            HasSubstr("--frontier: goes with --overlap none on a mesh")));
  EXPECT_THAT(
      orrery("spmd --graph Rmoe --states 9 --mesh 2x2x2x2 --cost orrery --machine dgx-h100").err,
      HasSubstr("--mesh: found '2x2x2x2', expected two or three numbers"));
  const std::string mesh = "spmd --graph Rmoe --mesh 2x2 --cost orrery --machine dgx-h100 ";
  EXPECT_THAT(orrery(mesh + "--states 0").err,
              HasSubstr("--states: found '0', expected 1 to 10000000"));
  EXPECT_THAT(orrery(mesh + "--states many").err,
              AllOf(HasSubstr("--states: found 'many'"), Not(HasSubstr("1 to 10000000"))));
  EXPECT_THAT(orrery("spmd --graph Rmoe --states 9 --profile nvl8").err,
              HasSubstr("--states: goes with --mesh"));
  EXPECT_THAT(orrery("spmd --graph mixtral-8x7b --mesh 8x2 --fixed expert_parallel" + on).err,
              HasSubstr("8 nodes have no signatures that the mesh and --fixed allow, the first is "
                        "node 18 (layers_0_expert_fc1_gemm)"));
}

TEST(Spmd, SlowProgramsOnAMeshArePlans) {
  const Folder folder;
  const std::string plan = folder / "plan.yaml";
  const std::string on = " --model mixtral-8x7b --machine dgx-h100 --allow-oom --json";
  const auto found = spmd_json_of(
      "--graph mixtral-8x7b --mesh 8x4 --batch 64 --sequence 4096 --cost orrery --machine dgx-h100 "
      "--save " +
      plan);
  const Outcome run = orrery("simulate --plan " + plan + on);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto program = nlohmann::json::parse(run.out);
  EXPECT_EQ(program.at("step_time_s"), found.at("simulated_s"));
  EXPECT_EQ(program.at("step_time_s"), found.at("optimum_s"));
  // Its degrees are those of samples over 32 devices and experts over the 8 of a node.
  const Outcome megatron = orrery(
      "simulate --dp 32 --ep 8 --microbatch 2 --global-batch 64 --sequence 4096 --zero 1 "
      "--grad-type bf16 --grad-reduce-type bf16" +
      on);
  ASSERT_EQ(megatron.status, 0) << megatron.err;
  const auto other = nlohmann::json::parse(megatron.out);
  const auto ratio = [](double ours, double theirs) { return ours / theirs; };
  const auto& spent = program.at("breakdown_s");
  const auto& theirs = other.at("breakdown_s");
  // The operators are the same; a program's backward kernels take twice its forward ones.
  EXPECT_NEAR(ratio(program.at("step_time_s"), other.at("step_time_s")), 1, 0.03);
  // The program may sum a gradient over both axes at once or over one after the other: what is
  // exposed is compared as a whole, and the exchange of tokens is part of the inner axis.
  EXPECT_GE(ratio(spent.at("inner"), theirs.at("ep_exposed")), 0.95);
  EXPECT_NEAR(ratio(spent.at("inner").get<double>() + spent.at("outer").get<double>() +
                        spent.at("all").get<double>(),
                    theirs.at("ep_exposed").get<double>() + theirs.at("dp_exposed").get<double>()),
              1, 0.1);
  // Not another number of devices, nor another graph.
  EXPECT_THAT(orrery("simulate --dp 16 --plan " + plan + on).err,
              HasSubstr("found 16 devices, expected 32, those of its mesh 8x4"));
  EXPECT_THAT(orrery("simulate --machine dgx-h100 --model llama-3-8b --plan " + plan).err,
              HasSubstr("one for the graph of llama-3-8b"));
  EXPECT_THAT(orrery("spmd --graph mixtral-8x7b --layers 2 --mesh 8x2 --cost orrery --machine "
                     "dgx-h100 --save " +
                     plan)
                  .err,
              HasSubstr("all layers"));
}

TEST(Spmd, ProgramsOnAMeshOfAnyGraph) {
  const Folder folder;
  const std::string file = folder / "strategy.json";
  const std::string what = " --graph Rmoe --layers 4 --machine dgx-a100-80g";
  const auto found = spmd_json_of("--mesh 8x2 --cost orrery --save " + file + what);
  const auto simulated = [&](const std::string& more) {
    return orrery("simulate --json --strategy " + file + what + more);
  };
  const Outcome run = simulated("");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), found.at("simulated_s"));
  EXPECT_THAT(simulated(" --overlap both").err, HasSubstr("--overlap: contradicts a strategy on"));
  EXPECT_THAT(simulated(" --devices 8").err, HasSubstr("expected 16, those of its mesh 8x2"));
  EXPECT_THAT(orrery("spmd --cost orrery --strategy " + file + what).err,
              HasSubstr("expected spmd-strategy/1, a program of devices as one axis"));
  std::string text = content(file);
  text.replace(text.find("\"all\""), 5, "\"inside\"");
  const Outcome wrong = orrery("simulate --strategy " + folder.write("wrong.json", text) + what);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(
      wrong.err,
      HasSubstr("group: found 'inside', expected one of inner, middle, outer, inner_middle,"));
}

TEST(Spmd, WrongInputsCost) {
  const std::string on = "--graph Rmoe --layers 2 --profile 2m_10g";
  EXPECT_EQ(spmd_json_of(on + " --noise 0").at("optimum_s"), spmd_json_of(on).at("optimum_s"));
  EXPECT_GE(spmd_json_of(on + " --noise 0.8 --seed 3").at("optimum_s"),
            spmd_json_of(on).at("optimum_s"));
}

TEST(Spmd, ATableOfStagesAndWellKnownStrategies) {
  const Outcome run = orrery("spmd --graph Vswitch --layers 2 --profile 4c4m");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("expert_parallel_fsdp"), HasSubstr("all_to_all"),
                             HasSubstr("layers_1_w1: -> gather_0")));
}

TEST(Spmd, TheExampleRunsItsStudiesAndDrawsThem) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "OUT=" + (folder / "") + " ORRERY=" + std::string(ORRERY_BINARY) +
                              " " + ORRERY_SOURCE_DIR +
                              "/examples/hidup/run.sh vi_f_search_time traces >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(out),
              AllOf(HasSubstr("4096 devices\n"), HasSubstr("12 of 12 points there, 0 refused")));
  const std::string rows = content(folder / "vi_f_search_time.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 7 * 3) << rows;
  EXPECT_THAT(content(folder / "vi_f_search_time.svg"), HasSubstr("4096 devices"));
}

TEST(Spmd, EveryMistakeAtOnce) {
  const Outcome run =
      orrery("spmd --graph Rmo --layers x --overlap all --fixed zero --cost mine --devices 0");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("did you mean 'Rmoe'"), HasSubstr("--layers: found 'x'"),
                             HasSubstr("--overlap: found 'all'"), HasSubstr("--fixed: found"),
                             HasSubstr("--cost: found 'mine'"), HasSubstr("--devices: found '0'")));
  EXPECT_THAT(orrery("spmd --graph Rmoe --profile 64c8m --seed 4").err,
              HasSubstr("--seed: goes with --noise"));
}

TEST(Spmd, MistakesOfAGraphNameTheirLines) {
  const Folder folder;
  const std::string head = R"({"format": "annotated-graph/1",
"tensors": [{"id": 0, "producer": 0, "shape": [4], "bytes": 16}],
"nodes": [
)";
  const auto err = [&](const std::string& nodes) {
    return orrery("spmd --profile 64c8m --graph " + folder.write("g.json", head + nodes + "]}"))
        .err;
  };
  EXPECT_THAT(err(R"({"id": 0, "kind": "parameter", "name": "w", "flops": 0, "inputs": [],
"outputs": [0], "signatures": [[[], ["gather_x"]], [[], "full"]]})"),
              AllOf(HasSubstr("g.json:5"), HasSubstr("found 'gather_x', expected full, reduce"),
                    HasSubstr("a list of forms")));
  EXPECT_THAT(
      err(R"({"id": 1, "kind": "weight", "name": "w", "flops": -1,
"outputs": [0], "signatures": []})"),
      AllOf(HasSubstr("expected 0: ids count"), HasSubstr("found 'weight'"), HasSubstr("flops")));
  EXPECT_THAT(err(R"({"id": 0, "kind": "parameter", "name": "w", "flops": 0, "inputs": [7],
"outputs": [0], "signatures": [[["full"], ["gather_1"]]]})"),
              AllOf(HasSubstr("input 7 is no tensor"), HasSubstr("node 0 (w)")));
}

}  // namespace
}  // namespace orrery::testing
