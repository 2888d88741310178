// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "serving/launch_line.h"
#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery::serving {
namespace {

TEST(Engines, ACardWithoutBf16ServesInFp16UnlessTheFileAsksForIt) {
  const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  const machine::Machine t4 = machine::load_machine("t4").value();
  const std::vector<requests::Request> three = requests::generate({.rate = 20, .count = 3});
  Engine engine = load_engine("vllm@0.19").value();
  const auto run = serve(model, t4, engine, three);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->engine.activations, graph::DataType::fp16);
  EXPECT_THAT(run->notes, ::testing::ElementsAre(::testing::HasSubstr("in fp16")));
  EXPECT_TRUE(
      serve(model, machine::load_machine("dgx-h100").value(), engine, three).value().notes.empty());
  engine.stated.emplace_back("precision.activations", "e.yaml:2");
  const auto asked = serve(model, t4, engine, three);
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().to_string(), ::testing::HasSubstr("a type that T4"));
}

TEST(Engines, ACheckpointOfEightBitsIsWeightsAloneWhereTheCardDoesNotComputeInThem) {
  const zoo::Model model = zoo::load_model("llama-3.1-8b").value();
  const machine::Machine a100 = machine::load_machine("dgx-a100-80g").value();
  const std::vector<requests::Request> three = requests::generate({.rate = 20, .count = 3});
  Engine engine = load_engine("vllm@0.19").value();
  const auto wide = serve(model, a100, engine, three).value();
  engine.weights = engine.activations = graph::DataType::fp8;
  const auto run = serve(model, a100, engine, three);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->engine.activations, graph::DataType::bf16);
  EXPECT_EQ(run->engine.weights, graph::DataType::fp8);
  EXPECT_THAT(run->notes, ::testing::ElementsAre(::testing::HasSubstr("in bf16")));
  // 16.06 GB of weights in 16 bits, of which 128,256 x 4,096 twice stay so.
  EXPECT_NEAR(static_cast<double>(run->weights.value()), (16.06e9 - 2.1e9) / 2 + 2.1e9, 0.05e9);
  EXPECT_LT(run->requests[0].last, wide.requests[0].last);
  engine.stated.emplace_back("precision.activations", "e.yaml:2");
  EXPECT_FALSE(serve(model, a100, engine, three));
}

TEST(Engines, ImbalanceThatAFileStatesIsInPlaceOfAReleasesSpread) {
  const auto node = parse_config("{engine: vllm@0.20, parallel: {moe_imbalance: 1.5}}", "e.yaml",
                                 ConfigSyntax::yaml);
  const Engine engine = parse_engine(node.value()).value();
  EXPECT_EQ(engine.moe_imbalance, 1.5);
  EXPECT_EQ(engine.moe_bias, 0);
}

TEST(Engines, ExpertsDoNotHaveAllOfARoutersScores) {
  const auto node =
      parse_config("{engine: vllm@0.20, parallel: {moe_bias: 1}}", "e.yaml", ConfigSyntax::yaml);
  const auto engine = parse_engine(node.value());
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().to_string().find("e.yaml:1: parallel.moe_bias: found '1'"),
            std::string::npos)
      << engine.error().to_string();
}

TEST(Engines, EveryOneIsReadBackEqual) {
  for (const EngineDefaults& row : engines()) {
    const Engine engine = load_engine(std::string(row.name)).value();
    const auto again = parse_config(to_yaml(engine), "engine", ConfigSyntax::yaml)
                           .and_then([](const ConfigNode& node) { return parse_engine(node); });
    ASSERT_TRUE(again.has_value()) << row.name;
    EXPECT_EQ(to_yaml(*again), to_yaml(engine));
  }
}

TEST(Engines, HybridCachesAndStatesGoThroughLaunchLines) {
  for (const auto& [framework, line] :
       {std::pair{"vllm", "--disable-hybrid-kv-cache-manager --mamba-ssm-cache-dtype float32"},
        {"sglang", "--disable-hybrid-swa-memory --mamba-ssm-dtype float32"}}) {
    Engine engine = load_engine(framework).value();
    engine.whole_windows = true;
    engine.state = graph::DataType::fp32;
    const LaunchLine written = export_engine(framework, engine, "m").value();
    EXPECT_THAT(written.lost, ::testing::IsEmpty());
    std::istringstream words(line);
    const std::vector<std::string> list{std::istream_iterator<std::string>(words), {}};
    const ImportedEngine read = import_engine(framework, list).value();
    EXPECT_THAT(read.ignored, ::testing::IsEmpty());
    EXPECT_EQ(to_yaml(read.engine), to_yaml(engine));
  }
  const auto odd = import_engine("vllm", {"--mamba-ssm-cache-dtype", "int8"});
  EXPECT_EQ(odd.value().ignored.size(), 1U);  // named, not dropped
}

TEST(Engines, LaunchersAndGuessesThatAPolicyHasNot) {
  // SGLang's engine guesses no tokens here: said first, not refused.
  const auto guessing = import_engine(
      "sglang", {"python3", "-m", "sglang.launch_server", "--model", "m", "--speculative-algorithm",
                 "EAGLE3", "--speculative-num-steps", "3", "--speculative-draft-model-path", "d"});
  ASSERT_TRUE(guessing.has_value()) << guessing.error().to_string();
  EXPECT_EQ(guessing->ignored.front().words, "--speculative-algorithm");
  // What stands before the server is its launcher's.
  const auto launched =
      import_engine("trtllm", {"mpirun", "-n", "16", "--oversubscribe", "trtllm-llmapi-launch",
                               "trtllm-serve", "m", "--tp_size", "16"});
  EXPECT_THAT(launched.value().ignored, ::testing::IsEmpty());
  EXPECT_EQ(launched.value().engine.tp, 16);
  // A checkpoint's name may say the type of its weights, which a shipped model has not.
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"vllm", "serve", "meta-llama/Llama-3.1-405B-Instruct-FP8"},
        {"vllm", "serve", "--model", "/models/Llama-3.1-405B-Instruct-FP8/"},
        {"vllm", "serve", "--model=m-FP8", "--served-model-name", "x-AWQ"}}) {
    const ImportedEngine of_fp8 = import_engine("vllm", line).value();
    ASSERT_FALSE(of_fp8.ignored.empty());
    EXPECT_THAT(of_fp8.ignored.front().sentence, ::testing::HasSubstr("its name says fp8"));
  }
  EXPECT_TRUE(import_engine("vllm", {"vllm", "serve", "m-FP8", "-q", "fp8"})->ignored.empty());
  EXPECT_THAT(import_engine("vllm", {"vllm", "serve", "m", "--tensor-parallel-size", "$TP"})
                  .error()
                  .to_string(),
              ::testing::HasSubstr("FILE -- NAME=value"));
}

ImportedEngine engine_in(const std::string& framework, const std::string& text,
                         const std::string& file) {
  auto imported = launch_of(framework, text, file, {}).and_then([&](const EngineWords& line) {
    return import_engine(framework, line.words, line.places);
  });
  EXPECT_TRUE(imported) << imported.error().to_string();
  return imported ? std::move(*imported) : ImportedEngine();
}

TEST(Engines, ManifestsOfKubernetesAndComposeHoldLaunchLines) {
  // A line of a shell among the arguments, after another document.
  const std::string shell =
      "kind: Service\n---\nkind: Deployment\nspec:\n  containers:\n  - name: vllm\n"
      "    image: vllm/vllm-openai:latest\n    command: [\"/bin/sh\", \"-c\"]\n    args: [\n"
      "      \"vllm serve m --max-num-seqs 12 --tensor-parallel-size 2\"\n    ]\n";
  EXPECT_EQ(engine_in("vllm", shell, "d.yaml").engine.tp, 2);
  EXPECT_EQ(engine_in("vllm", shell, "d.yaml").engine.max_num_seqs, 12);
  EXPECT_EQ(engine_in("vllm", "# Ours.\n---\n" + shell + "---\n", "d.yaml").engine.tp, 2);
  // Words of a list, with a variable of the container.
  const ImportedEngine pod =
      engine_in("vllm",
                "spec:\n  containers:\n  - image: busybox\n    command: [sleep]\n"
                "  - image: somewhere/served\n"
                "    command: [python3, -m, vllm.entrypoints.openai.api_server]\n"
                "    args:\n    - --model=$(MODEL_ID)\n    - --tensor-parallel-size=$(RANKS)\n"
                "    env:\n    - {name: RANKS, value: '4'}\n",
                "pod.yml");
  EXPECT_EQ(pod.engine.tp, 4);
  // Compose: the image is the server, the command its flags.
  EXPECT_EQ(engine_in("sglang",
                      "services:\n  s:\n    image: lmsysorg/sglang:latest\n"
                      "    command: --model-path m --tp 8\n",
                      "compose.yaml")
                .engine.tp,
            8);
  // A file of flags, as vLLM's --config reads it.
  EXPECT_EQ(engine_in("vllm", "model: m\nmax-model-len: 4k\ntensor_parallel_size: 2\n", "c.yaml")
                .engine.max_model_len,
            4000);
  EXPECT_THAT(
      launch_of("vllm", "apiVersion: v1\nkind: Service\n", "s.yaml", {}).error().to_string(),
      ::testing::HasSubstr("s.yaml:1: no container whose command"));
  // Documents that say nothing, and what stands beside their mark.
  EXPECT_EQ(
      engine_in("vllm", "# ours\n--- # first\n" + shell + "---\n# last\n", "d.yaml").engine.tp, 2);
  const auto wrong = launch_of("vllm", shell, "d.yaml", {}).and_then([](EngineWords line) {
    line.words.back() = "x";
    return import_engine("vllm", line.words, line.places);
  });
  EXPECT_THAT(wrong.error().to_string(), ::testing::HasSubstr("d.yaml:6: --tensor-parallel-size"));
}

TEST(Engines, FilesOfSeveralServersSayWhichIsRead) {
  const std::string pods =
      "containers:\n- image: vllm/vllm-openai\n  args: [--max-num-seqs, $(SEQS)]\n"
      "- image: somewhere\n  command: [sh, -c, 'vllm serve m --tensor-parallel-size $RANKS']\n"
      "  env:\n  - {name: RANKS, value: '4'}\n";
  const auto two = launch_of("vllm", pods, "pods.yaml", {});
  ASSERT_TRUE(two.has_value()) << two.error().to_string();
  ASSERT_EQ(two->remarks.size(), 1U);
  EXPECT_EQ(two->remarks.front().sentence, "starts 2 servers; this is the first");
  // The shell of the second has its container's variable, or the one that is given.
  const std::string second = "containers:\n" + pods.substr(pods.find("- image: somewhere"));
  EXPECT_EQ(engine_in("vllm", second, "pod.yaml").engine.tp, 4);
  const auto given = launch_of("vllm", second, "pod.yaml", {"RANKS=2"});
  ASSERT_TRUE(given.has_value());
  EXPECT_TRUE(given->remarks.empty());
  EXPECT_EQ(given->words.back(), "2");
  EXPECT_THAT(launch_of("vllm", "containers:\n- command: \"vllm serve 'm\"\n", "pod.yaml", {})
                  .error()
                  .to_string(),
              ::testing::HasSubstr("expected a closing quote"));
  // "- --model: m" is a map in YAML, and a dash alone is nothing.
  const auto map = launch_of("vllm",
                             "containers:\n- image: vllm/vllm-openai\n  args:\n  - --model: m\n"
                             "  - [--tp, 4]\n",
                             "map.yaml", {});
  ASSERT_FALSE(map.has_value());
  EXPECT_THAT(map.error().to_string(),
              ::testing::AllOf(::testing::HasSubstr("map.yaml:4"), ::testing::HasSubstr("--model"),
                               ::testing::HasSubstr("map.yaml:5")));
  const auto words = launch_of(
      "vllm", "containers:\n- image: vllm/vllm-openai\n  args: {--tp: 4}\n", "map.yaml", {});
  ASSERT_FALSE(words.has_value());
  EXPECT_THAT(words.error().to_string(), ::testing::HasSubstr("args: found 'a map', expected"));
  const auto script = launch_of("vllm",
                                "pip install vllm\nvllm serve m &\nvllm bench serve --model m\n"
                                "python -m vllm.entrypoints.openai.api_server --model m\n",
                                "s.sh", {});
  ASSERT_EQ(script->remarks.size(), 1U);
}

TEST(Engines, OptionsThatAScriptWritesAreRead) {
  // TensorRT-LLM: every rank has the attention of its own requests, experts are over all.
  const ImportedEngine imported = engine_in(
      "trtllm",
      "cat > /tmp/extra.yml <<EOF\nenable_attention_dp: true\ncuda_graph_config:\n"
      "  max_batch_size: 512\nkv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.8\n"
      "moe_config:\n  backend: CUTLASS\nEOF\ntrtllm-serve m --tp_size 8 --ep_size 8 "
      "--extra_llm_api_options /tmp/extra.yml\n",
      "serve.sh");
  EXPECT_EQ(imported.engine.dp, 8);
  EXPECT_EQ(imported.engine.tp, 1);
  EXPECT_EQ(imported.engine.ep, 8);
  EXPECT_EQ(imported.engine.largest_graph, 512);
  EXPECT_EQ(imported.engine.kv, graph::DataType::fp8);
  EXPECT_DOUBLE_EQ(imported.engine.memory_utilization, 0.8);
  ASSERT_EQ(imported.ignored.size(), 1U);
  EXPECT_EQ(imported.ignored.front().words, "--moe_config.backend=CUTLASS");
}

TEST(Engines, TensorRtHasItsThreePolicies) {
  using scheduler::Policy;
  for (const auto& [name, policy] : {std::pair{"trtllm@1.0", Policy::trtllm},
                                     {"trtllm-max@1.0", Policy::max_utilization},
                                     {"trtllm-static@1.0", Policy::static_batch}}) {
    const Engine engine = load_engine(name).value();
    EXPECT_EQ(engine.policy, policy);
    EXPECT_EQ(engine.block_size, 32);
  }
}

TEST(Engines, MistakesAreNamed) {
  const auto engine = parse_config("engine: vlm\n", "e.yaml", ConfigSyntax::yaml)
                          .and_then([](const ConfigNode& node) { return parse_engine(node); });
  ASSERT_FALSE(engine.has_value());
  EXPECT_THAT(engine.error().to_string(), ::testing::HasSubstr("vllm@0.19"));
  const auto field = parse_config("scheduler: {max_num_seq: 3}\n", "e.yaml", ConfigSyntax::yaml)
                         .and_then([](const ConfigNode& node) { return parse_engine(node); });
  ASSERT_FALSE(field.has_value());
  EXPECT_THAT(field.error().to_string(), ::testing::HasSubstr("max_num_seqs"));
}

}  // namespace
}  // namespace orrery::serving
