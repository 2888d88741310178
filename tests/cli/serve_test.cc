// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSmall =
    "serve --model llama-3.1-8b --machine dgx-h100 --rate 10 --input 500 --output 50 --requests "
    "40 ";

TEST(ServeCommand, PrintsTheBlockOfVllmBench) {
  const Outcome run = orrery(kSmall);
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* line : {"============ Serving Benchmark Result ============\n",
                           "Successful requests:                     40        \n",
                           "---------------Time to First Token----------------\n",
                           "-----Time per Output Token (excl. 1st token)------\n",
                           "---------------Inter-token Latency----------------\n"}) {
    EXPECT_THAT(run.out, HasSubstr(line));
  }
}

TEST(ServeCommand, JsonHasWhatItsSchemaSaysAndNothingElse) {
  const Outcome run = orrery(std::string(kSmall) + "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto schema =
      nlohmann::json::parse(content(std::string(ORRERY_SOURCE_DIR) + "/docs/schema/serve.json"));
  for (const auto& [key, value] : json.items()) {
    EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  }
  for (const auto& key : schema.at("required")) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json.at("output_tokens"), 40 * 50);
  EXPECT_LE(json.at("ttft_s").at("median"), json.at("ttft_s").at("p99"));
}

TEST(ServeCommand, ATopologysSharedLinksSlowStepsAndTransfersDown) {
  // 32 GPUs on 4 leaves: as the switch that they stand for with uplinks for all, slower with one
  // uplink of a GPU's rate for 8; prompts in one pool, decodes in the other, 8 x 2 GPUs each.
  const Folder folder;
  const std::string engine =
      folder.write("engine.yaml", "parallel: {tp: 16, all_reduce: ring}\nfleet: {prefill: 1}\n");
  const auto mean = [&](const std::string& topology) {
    std::string text = content(std::string(ORRERY_SOURCE_DIR) + "/configs/machines/dgx-h100.yaml");
    const std::size_t network = text.find("\nnetwork:");
    const std::size_t rest = text.find("\norigins:");
    EXPECT_NE(rest, std::string::npos);
    text =
        text.substr(0, network) +
        "\nnetwork: [{name: fabric, kind: switch, size: 32, bandwidth: 50 GB/s, latency: 4 us}]\n" +
        topology + "\n";
    for (const char* tier : {"    - {name: host", "    - {name: nvme"}) {  // through the network
      if (const std::size_t at = text.find(tier); at != std::string::npos) {
        text.erase(at, text.find('\n', at) + 1 - at);
      }
    }
    const Outcome run =
        orrery("serve --model llama-3.1-8b --machine " + folder.write("machine.yaml", text) +
               " --engine " + engine + " --rate 4 --input 8000 --output 20 --requests 20 --json");
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("e2e_s").at("mean").get<double>();
  };
  const std::string leaves =
      "topology: {links: 'leaf_spine:leaves=4,hosts=8,spines=1,bandwidth=50 "
      "GB/s,uplink_bandwidth=";
  const double closed = mean("");
  EXPECT_NEAR(mean(leaves + "400 GB/s', routing: shortest}") / closed, 1, 1e-6);
  EXPECT_GT(mean(leaves + "25 GB/s', routing: shortest}") / closed, 1.2);
}

TEST(ServeCommand, NetworksByTheirNames) {
  const auto served = [](const std::string& more) {
    const Outcome run = orrery(std::string(kSmall) + "--devices 8 --json " + more);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto closed = served("");
  EXPECT_FALSE(closed.contains("network"));
  for (const char* network : {"ports", "fifo", "flow"}) {
    const auto run = served(std::string("--network ") + network);
    EXPECT_EQ(run.at("network"), network);
    EXPECT_NEAR(run.at("tpot_s").at("mean").get<double>(),
                closed.at("tpot_s").at("mean").get<double>(), 1e-8)
        << network;
  }
  const Outcome missing = orrery(std::string(kSmall) + "--topology leaf_spine:leafs=2");
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.err, HasSubstr("--topology"));
  const Outcome few = orrery(std::string(kSmall) + "--devices 32 --topology fat_tree:k=2");
  EXPECT_NE(few.status, 0);
  EXPECT_THAT(few.err, HasSubstr("at most the 2 hosts of fat_tree:k=2"));
  const Outcome pools = orrery(std::string(kSmall) + "--prefill 1 --network packet");
  EXPECT_EQ(pools.status, 0) << pools.err;
}

TEST(ServeCommand, ARowPerRequestAndStepsForPerfetto) {
  const Folder folder;
  const std::string rows = folder / "rows.csv";
  const std::string trace = folder / "trace.json";
  const Outcome run =
      orrery(std::string(kSmall) + "--csv --requests-out " + rows + " --trace-out " + trace);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 2);
  const std::string text = content(rows);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 41);
  EXPECT_THAT(text, HasSubstr("ttft_s,tpot_s,e2e_s"));
  EXPECT_GT(nlohmann::json::parse(content(trace)).at("traceEvents").size(), 50U);
}

TEST(ServeCommand, ATraceIsServedAtItsTimes) {
  const Folder folder;
  const std::string trace = folder.write("t.jsonl",
                                         "{\"input_toks\": 100, \"output_toks\": 5, "
                                         "\"arrival_time_ns\": 0}\n{\"input_toks\": 100, "
                                         "\"output_toks\": 5, \"arrival_time_ns\": 2000000000}\n");
  const Outcome run =
      orrery("serve --model llama-3.1-8b --machine dgx-h100 --json --trace " + trace);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_GT(nlohmann::json::parse(run.out).at("duration_s"), 2.0);
  const Outcome both =
      orrery("serve --model llama-3.1-8b --machine dgx-h100 --rate 3 --trace " + trace);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--rate: contradicts --trace"));
}

TEST(ServeCommand, EveryMistakeIsNamed) {
  const Outcome run =
      orrery("serve --model llama-3.1-8 --machine dgx-h100 --rate 0 --input many --engine vlm");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("--model: found 'llama-3.1-8'"), HasSubstr("--rate: found '0'"),
                    HasSubstr("--input: found 'many'"), HasSubstr("--engine: found 'vlm'")));
  const Folder folder;
  const Outcome twice =
      orrery(std::string(kSmall) + "--engine " + folder.write("e.yaml", "cache: {teirs: host}\n"));
  EXPECT_EQ(twice.status, 2);
  EXPECT_EQ(std::count(twice.err.begin(), twice.err.end(), '\n'), 1);  // once, with what was meant
  const Outcome unused = orrery(std::string(kSmall) + "--think '1 s' --burstiness 2");
  EXPECT_EQ(unused.status, 2);
  EXPECT_THAT(unused.err, AllOf(HasSubstr("--think: is for --max-concurrency or --turns"),
                                HasSubstr("--burstiness: is for --arrival gamma")));
  EXPECT_THAT(orrery(std::string(kSmall) + "--attainment 0.5").err,
              HasSubstr("--attainment: goes with --slo"));
  const Outcome rare = orrery(
      "serve --model llama-3.1-8b --machine dgx-h100 --requests 5 --rate 1e-300");  // not a run of
                                                                                    // one request
  EXPECT_EQ(rare.status, 2);
  EXPECT_THAT(rare.err, HasSubstr("--rate: found '1e-300', expected one at which all"));
  const Outcome large = orrery("serve --model llama-3.1-405b --machine dgx-h100 --devices 2");
  EXPECT_EQ(large.status, 2);
  EXPECT_THAT(large.err, HasSubstr("more tp or pp"));
}

TEST(ServeCommand, AQuantisedCheckpointIsServedInItsFormats) {
  const Folder folder;
  auto config = nlohmann::json::parse(
      content(std::string(ORRERY_SOURCE_DIR) + "/configs/models/llama-3.1-8b.json"));
  const auto weights = [&](const char* quantization, const std::string& engine) {
    config["quantization_config"] = nlohmann::json::parse(quantization);
    const std::string model = folder.write("m.json", config.dump());
    const Outcome run = orrery("serve --machine dgx-h100 --requests 5 --json --model " + model +
                               " --engine " + engine);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("weights_bytes").get<double>();
  };
  // 6.98e9 weights of the layers in 4 bits and 16 / 128 of scales, both tables (1.05e9) in 16.
  const char* awq = R"({"quant_method": "awq", "bits": 4, "group_size": 128})";
  EXPECT_NEAR(weights(awq, "vllm@0.19") / (6.98e9 * 4.125 / 8 + 2.1e9), 1, 0.005);
  // An engine's file has the last word.
  const std::string wide = folder.write("e.yaml", "precision: {weights: fp8, scale_bits: 0}\n");
  EXPECT_NEAR(weights(awq, wide) / (6.98e9 + 2.1e9), 1, 0.005);
  const std::string model = folder.write(
      "wrong.json", (config["quantization_config"] = {{"quant_method", "awk"}}, config.dump()));
  const Outcome wrong = orrery("serve --machine dgx-h100 --model " + model);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'awq'"));
}

TEST(ServeCommand, WhatAnEngineLacksOnAMachineHasItsLine) {
  // All of them at once, whatever else is wrong.
  const Folder folder;
  const std::string serve = "serve --model llama-3.1-8b --machine dgx-h100 --engine ";
  const Outcome both = orrery(serve +
                              folder.write("e.yaml",
                                           "parallel: {tp: 3}\ncache:\n  tiers: 'hst:1 GB,nvme'\n"
                                           "precision: {activations: fp4}\n") +
                              " --rate nan");
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err,
              AllOf(HasSubstr("--rate: found 'nan'"), HasSubstr("e.yaml:1: parallel.tp: found '3'"),
                    HasSubstr("e.yaml:3: cache.tiers: found 'hst'"),
                    HasSubstr("e.yaml:4: precision.activations: found 'fp4'")));
  const Outcome form =
      orrery(serve + folder.write("f.yaml", "cache: {tiers: 'host:0 B', bloks: 3}\n"));
  EXPECT_THAT(form.err,
              AllOf(HasSubstr("f.yaml:1: cache.tiers: found 'host:0 B'"), HasSubstr("'blocks'")));
}

TEST(ServeCommand, FusedCommunicationServesFasterAndSaysWhere) {
  // Prompts of 4000 tokens, two nodes: a rank's message of 65 MB at 50 GB/s becomes an eighth,
  // 1.15 ms less; 159 norms of 4 x 65 MB save at most 7/8 of 131 us (2 TB/s), 18 ms.
  const Folder folder;
  const std::string serve =
      "serve --model llama-3-70b --machine dgx-h100 --rate 0.1 --input 4000 --output 4 --requests "
      "5 --engine ";
  const auto served = [&](const std::string& engine, const std::string& flags = "") {
    const Outcome run = orrery(serve + folder.write("e.yaml", engine) + " --json" + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto ttft = [](const nlohmann::json& run) { return run["ttft_s"]["mean"].get<double>(); };
  const auto whole = served("parallel: {tp: 8, pp: 2}\n");
  const auto sliced = served("parallel: {tp: 8, pp: 2}\n", " --fuse");
  EXPECT_LT(ttft(sliced), ttft(whole) - 0.001);
  EXPECT_GT(ttft(sliced), ttft(whole) - 0.0012 - 0.018);
  EXPECT_FALSE(whole.contains("fused"));
  EXPECT_EQ(sliced["unfused"]["ttft_s"], ttft(whole));
  ASSERT_EQ(sliced["fused"].size(), 2U);
  EXPECT_EQ(sliced["fused"][0]["pair"], "tp+pp");
  EXPECT_EQ(sliced["fused"][0]["places"], 1);
  EXPECT_EQ(sliced["fused"][1]["pair"], "tp+sp");
  EXPECT_EQ(sliced["fused"][1]["places"], 159);
  EXPECT_EQ(ttft(served("parallel: {tp: 8, pp: 2, fuse: true}\n")), ttft(sliced));
  const Outcome text =
      orrery(serve + folder.write("e.yaml", "parallel: {tp: 8, pp: 2}\n") + " --fuse");
  EXPECT_THAT(text.out, AllOf(HasSubstr("tp+pp: 1 of 8192 tokens, all_reduce tp, send_recv pp -> "
                                        "reduce_scatter tp, send_recv pp, all_gather tp"),
                              HasSubstr("Mean TTFT (ms), without -> with:")));
  const Outcome alone = orrery(serve + folder.write("e.yaml", "parallel: {pp: 2}\n") + " --fuse");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--fuse: found 'tp 1'"));
}

TEST(ServeCommand, MeasuredKernelsReplaceFormulas) {
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/tests/study/served/rtx4090/";
  const std::string files =
      folder + "dense.csv," + folder + "per_sequence.csv," + folder + "attention.csv";
  const std::string words =
      "serve --model llama-3.1-8b --machine rtx-4090 --engine vllm@0.19 --arrival infinite "
      "--requests 1 --input 16 --output 2 --json --kernels " +
      files;
  // One decode of 17 keys: 32 layers of measured kernels at T = 1, and what is there once.
  const double layer = 2 * 1.85083 + 54.898 + 2.17567 + 38.1313 + 247.292 + 2.592 + 126.766 +
                       (9.31067 + (12.98 - 9.31067) * (17.0 - 16) / (128 - 16));
  const double once = 2.837 + 1.94167 + 1096.93 + 25.001;
  const Outcome run = orrery(words);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NEAR(nlohmann::json::parse(run.out)["tpot_s"]["mean"], 1e-6 * (32 * layer + once), 1e-9);
  const Outcome wrong = orrery("serve --model llama-3.1-8b --machine rtx-4090 --kernels none.csv");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("none.csv"));
  EXPECT_THAT(orrery("serve --model llama-3.1-8b --machine rtx-4090 --search plan --kernels a").err,
              HasSubstr("--kernels: found 'a', expected none with --search plan"));
  EXPECT_THAT(orrery("serve --model llama-3.1-8b --machine rtx-4090 --search plan --ffn 2").err,
              HasSubstr("--ffn: found '2', expected 0: the search lays attention and MLPs"));
  EXPECT_THAT(orrery("serve --model llama-3.1-8b --machine dgx-h100 --micro-batches 2").err,
              HasSubstr("--micro-batches: found '2', expected none without ffn"));
  EXPECT_THAT(orrery("validate --table vtrain_a100_multi --kernels " + files).err,
              HasSubstr("--kernels: found 'vtrain_a100_multi', expected a table of serving"));
}

TEST(ServeCommand, SearchFindsARate) {
  const Outcome run = orrery(
      "serve --model llama-3.1-8b --machine dgx-h100 --input 500 --output 50 --requests 200 "
      "--search rate --slo 'ttft=200 ms,tpot=20 ms'");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Largest rate: "));
  EXPECT_THAT(run.out, Not(HasSubstr("no rate breaks")));
  const Outcome fields =
      orrery(std::string(kSmall) + "--search rate --slo 'ttft=200 ms,tpot=20 ms' --json --seed 3");
  ASSERT_EQ(fields.status, 0) << fields.err;
  EXPECT_GT(nlohmann::json::parse(fields.out)["request_rate"], 0);
  const Outcome few = orrery(std::string(kSmall) + "--search rate --slo 'ttft=100 s'");
  EXPECT_THAT(few.out, HasSubstr("no rate breaks the limits: 40 requests"));
  EXPECT_THAT(few.out, HasSubstr("Largest rate: unknown, too few requests (100.00 % within"));
  EXPECT_THAT(few.out, Not(HasSubstr("Request rate configured")));
  const Outcome alone = orrery(std::string(kSmall) + "--search rate");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--slo: missing"));
}

TEST(ServeCommand, SearchFindsPlansAndSaysWhatTheOthersLose) {
  const Folder folder;
  const std::string search =
      "serve --model llama-3.1-8b --machine dgx-h100,rtx-4090 --devices 2 --input 500 --output 50 "
      "--search plan --formats bf16,w8a8 ";
  const Outcome run = orrery(search + "--json --plot " + (folder / "front.svg"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(content(folder / "front.svg"), HasSubstr("dgx-h100 w8a8 tp1"));
  const auto json = nlohmann::json::parse(run.out);
  const auto schema = nlohmann::json::parse(
      content(std::string(ORRERY_SOURCE_DIR) + "/docs/schema/serve-plan.json"));
  for (const auto& [key, value] : json.items()) {
    EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  }
  for (const auto& key : schema.at("properties").at("front").at("items").at("required")) {
    EXPECT_TRUE(json.at("front").at(0).contains(key)) << key;
  }
  EXPECT_EQ(json.at("layouts"), 16);  // two machines, two formats; tp1, tp2, pp2, two pools
  for (const auto& loser : json.at("losers")) {
    EXPECT_NE(loser.at("reason"), "");
  }
  EXPECT_THAT(orrery(search).out, HasSubstr("Without a point there:"));
  const Outcome wrong = orrery(search + "--rate 3 --max-concurrency 4");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--rate: contradicts --search plan"),
                               HasSubstr("--max-concurrency: contradicts")));
}

TEST(ServeCommand, EnginesAreListedAndShown) {
  EXPECT_THAT(orrery("list engines").out, HasSubstr("vllm@0.19"));
  const Outcome shown = orrery("show engine trtllm");
  ASSERT_EQ(shown.status, 0) << shown.err;
  const Folder folder;
  const std::string file = folder.write("engine.yaml", shown.out);
  EXPECT_EQ(orrery("show engine " + file).out, shown.out);
}

TEST(ServeCommand, TracesHaveByteOrderMarksAndRowsWithoutAnswers) {
  const Folder folder;
  const std::string trace = folder.write(
      "t.jsonl",
      "\xef\xbb\xbf{\"input\": 100, \"output\": 5}\r\n{\"input\": 100, \"output\": 0}\r\n");
  const std::string serve = "serve --model llama-3.1-8b --machine dgx-h100 --trace ";
  const Outcome run = orrery(serve + trace);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 row of the trace without an answer left out"));
  EXPECT_THAT(orrery(serve + folder.write("m.jsonl", "{\"input\": 100}\n")).err,
              HasSubstr("m.jsonl:1: output: missing; expected a whole number of tokens from 0 on"));
  EXPECT_THAT(orrery(serve + folder.write("u.csv", "a,b\n1,2\n")).err,
              HasSubstr("u.csv:1: header: unknown columns; expected a CSV file with"));
}

TEST(ServeCommand, PublishedRunsStayWithinTheirGoals) {
  const Outcome run = orrery("validate --table vllm_requests");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("10 %, met"));
  const Outcome phases = orrery("validate --table fastertransformer_13b");
  EXPECT_THAT(phases.out, HasSubstr("15 %, met"));
}

TEST(ServeCommand, WhatCanServeNothingOrChooseNothingIsRefused) {
  const std::string small = "serve --model llama-3.1-8b --machine dgx-h100 --requests 5 ";
  const Outcome long_prompts = orrery(small + "--input 1000000");
  EXPECT_NE(long_prompts.status, 0);
  EXPECT_THAT(long_prompts.err,
              AllOf(HasSubstr("none of 5 requests can be served"), HasSubstr("131072 tokens"),
                    Not(HasSubstr("blocks"))));  // only the cause that applies
  EXPECT_THAT(orrery(small + "--input 1000 --blocks 10").err,
              AllOf(HasSubstr("KV blocks of 16 tokens"), Not(HasSubstr("131072"))));
  EXPECT_EQ(orrery(small + "--router least_tokens --replicas 1").status, 0);
  EXPECT_THAT(orrery(small + "--router least_tokens").err,
              HasSubstr("--router: is for several engines: --replicas above 1"));
  EXPECT_EQ(orrery(small + "--router least_tokens --replicas 2").status, 0);
  EXPECT_THAT(orrery(small + "--max-concurrency 0").err,
              HasSubstr("--max-concurrency: found '0', expected 1 to"));
  // Prompts that are not cut pass whole: a step has room for the longest (vLLM's arg_utils.py).
  const Outcome whole = orrery(
      "serve --model llama-2-7b --machine dgx-a100-80g --engine vllm@0.6 --requests 5 "
      "--input 3000 --output 2 --json");
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(nlohmann::json::parse(whole.out).at("requests"), 5);
  const Outcome old_card = orrery("serve --model llama-3.2-1b --machine t4 --requests 5");
  EXPECT_EQ(old_card.status, 0) << old_card.err;
  EXPECT_THAT(old_card.out, HasSubstr("note: in fp16: "));
}

/// No step takes less than a microsecond, so that none is simulated and there is nothing to draw.
TEST(Serve, APlotOfNoPlanSaysWhy) {
  for (const char* form : {"--csv", "--plot never.svg"}) {
    const Outcome none = orrery(
        std::string("serve --model llama-3.2-1b --machine dgx-h100 --devices 1 --search plan "
                    "--requests 20 --slo 'ttft=1 us,tpot=1 us' ") +
        form);
    EXPECT_EQ(none.status, 2) << form;
    EXPECT_THAT(none.err, HasSubstr("no plan keeps the limits")) << form;
  }
}

TEST(PatchesAndHome, MistakesNameTheirFlags) {
  EXPECT_THAT(orrery("patches --steps 0").err, HasSubstr("--steps: found '0'"));
  EXPECT_THAT(orrery("home --model llama-2-7b --window 0").err,
              HasSubstr("--window: found '0', expected blocks in memory, 1 or more"));
  EXPECT_THAT(orrery("home --model llama-2-7b --powers 1,x").err, HasSubstr("--powers: found"));
}

}  // namespace
}  // namespace orrery::testing
