// SPDX-License-Identifier: Apache-2.0
/// The block that `orrery serve` prints, and when requests of a trace without times come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kServed =
    "serve --model llama-3.1-8b --machine dgx-h100 --rate 10 --input 500 --output 50 --requests "
    "40 ";

/// Names of the block's lines: what stands before the first digit, banners whole.
std::vector<std::string> names_of_block(const std::string& text) {
  std::istringstream lines(text.substr(text.find("============ Serving")));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    names.push_back(
        line.front() == '-' || line.front() == '=' ? line : line.substr(0, line.find(':') + 1));
  }
  return names;
}

TEST(ServeCommand, ItsBlockHasTheLinesOfVllmsInTheirOrder) {
  // vllm/benchmarks/serve.py with --goodput, --max-concurrency, --metric-percentiles 90,95,99 and
  // --percentile-metrics ttft,tpot,itl,e2el.
  const Outcome run =
      orrery(std::string(kServed) + "--max-concurrency 8 --slo 'ttft=1 s,tpot=1 s' --price 2");
  ASSERT_EQ(run.status, 0) << run.err;
  std::vector<std::string> expected{"============ Serving Benchmark Result ============",
                                    "Successful requests:",
                                    "Failed requests:",
                                    "Maximum request concurrency:",
                                    "Request rate configured (RPS):",
                                    "Benchmark duration (s):",
                                    "Total input tokens:",
                                    "Total generated tokens:",
                                    "Request throughput (req/s):",
                                    "Request goodput (req/s):",
                                    "Output token throughput (tok/s):",
                                    "Peak output token throughput (tok/s):",
                                    "Peak concurrent requests:",
                                    "Total token throughput (tok/s):"};
  for (const auto& [banner, name] :
       {std::pair{"---------------Time to First Token----------------", "TTFT"},
        {"-----Time per Output Token (excl. 1st token)------", "TPOT"},
        {"---------------Inter-token Latency----------------", "ITL"},
        {"----------------End-to-end Latency----------------", "E2EL"}}) {
    expected.emplace_back(banner);
    for (const char* which : {"Mean ", "Median ", "P90 ", "P95 ", "P99 "}) {
      expected.push_back(which + std::string(name) + " (ms):");
    }
  }
  std::vector<std::string> names = names_of_block(run.out);
  ASSERT_GT(names.size(), expected.size());
  names.resize(expected.size());
  EXPECT_EQ(names, expected);
  // All keep the limits: goodput is throughput. Fewer than 8 at once are not needed.
  const auto value = [&](const std::string& name) {
    const std::size_t at = run.out.find(name);
    return at == std::string::npos ? -1 : std::stod(run.out.substr(at + name.size()));
  };
  EXPECT_EQ(value("Request goodput (req/s):"), value("Request throughput (req/s):"));
  EXPECT_LE(value("Peak concurrent requests:"), 8);
  EXPECT_GE(value("Peak output token throughput (tok/s):"),
            value("Output token throughput (tok/s):") * 0.99);
  // 2 dollars an hour over tokens an hour.
  EXPECT_NEAR(value("Dollars per million output tokens:"),
              2 / 3600.0 / value("Output token throughput (tok/s):") * 1e6, 0.01);
}

TEST(ServeCommand, LengthsWithoutTimesComeAtARate) {
  const Folder folder;
  const std::string lengths = folder.write("lengths.jsonl",
                                           "{\"input\": 10, \"output\": 5}\n"
                                           "{\"input\": 20, \"output\": 5}\n"
                                           "{\"input\": 30, \"output\": 5}\n");
  const std::string serve =
      "serve --model llama-3.1-8b --machine dgx-h100 --json --trace " + lengths;
  const Outcome paced = orrery(serve + " --arrival fixed --rate 0.5");
  ASSERT_EQ(paced.status, 0) << paced.err;
  EXPECT_GT(nlohmann::json::parse(paced.out).at("duration_s").get<double>(), 4);  // 2 gaps of 2 s
  EXPECT_LT(nlohmann::json::parse(orrery(serve).out).at("duration_s").get<double>(), 1);
  EXPECT_THAT(orrery(serve + " --seed 3").err, HasSubstr("--seed"));
  const std::string timed =
      folder.write("timed.jsonl", "{\"input\": 10, \"output\": 5, \"arrival_s\": 1}\n");
  EXPECT_THAT(orrery("serve --model llama-3.1-8b --machine dgx-h100 --rate 2 --trace " + timed).err,
              HasSubstr("says when requests come"));
}

TEST(ServeCommand, ImagesAreTokensOfThePromptAndAPassOfTheEncoder) {
  const std::string common =
      "serve --model Qwen/Qwen2.5-VL-7B-Instruct --machine dgx-h100 --rate 2 --output 10 "
      "--requests 20 --input 100 --images-per-prompt 2 ";
  const Outcome run = orrery(common + "--image-size 1280x720 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json.at("images"), 40);
  // 1280 x 720 are 46 x 26 squares of 28 pixels, and two marks.
  EXPECT_EQ(json.at("input_tokens"), 20 * (100 + 2 * (46 * 26 + 2)));
  EXPECT_GT(json.at("encoding_s"), 0);
  EXPECT_THAT(json.at("notes").dump(), HasSubstr("1280 x 720 is 1198 tokens of the prompt, 4784"));
  // The same in the words of vLLM's benchmark, height first.
  const Outcome same = orrery(
      "serve --model qwen2.5-vl-7b --machine dgx-h100 --request-rate 2 --random-output-len 10 "
      "--num-prompts 20 --random-input-len 100 --random-mm-base-items-per-request 2 "
      "--random-mm-bucket-config '{(720, 1280, 1): 1.0, (720, 1280, 16): 0.0}' --json");
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(nlohmann::json::parse(same.out).at("ttft_s"), json.at("ttft_s"));
}

TEST(ServeCommand, NoImagesAreThePromptsOfText) {
  const std::string common =
      "serve --model gemma-3-4b --machine dgx-h100 --requests 10 --output 5 --csv ";
  const auto figures = [&](const std::string& more) {  // but for timing.wall_s, the last
    const Outcome run = orrery(common + more);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out.substr(0, run.out.rfind(','));
  };
  EXPECT_EQ(figures("--images-per-prompt 0"), figures(""));
  EXPECT_EQ(figures("--image-count 0 --image-size 1280x720"), figures(""));
}

TEST(ServeCommand, WhatAnEncoderHasNoUseForIsRefused) {
  const std::string common =
      "serve --model bert-large --machine dgx-h100 --requests 10 --input 100 ";
  EXPECT_EQ(orrery(common + "--output 1").status, 0);
  const Outcome run = orrery(common +
                             "--output 50 --prefill 1 --speculation-method ngram "
                             "--speculation-tokens 3 --speculation-acceptance 0.5");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--output: found '50', expected 1"),
                             HasSubstr("prefill: found '1', expected 0"),
                             HasSubstr("tokens: found '3', expected none")));
}

TEST(ServeCommand, MistakesInImagesAreNamed) {
  const std::string images = " --machine dgx-h100 --images-per-prompt 1 --image-size ";
  const Outcome blind = orrery("serve --model llama-3.1-8b" + images + "1280x720");
  EXPECT_EQ(blind.status, 2);
  EXPECT_THAT(blind.err, HasSubstr("llama-3.1-8b has no encoder of images"));
  for (const char* wrong : {"1280", "0x720", "1.5x2", "1280x720:-1", "'{(720, 1280, 16): 1.0}'",
                            "axb", "'{(720, 1280, 1): 1.0'", "'{720 by 1280, 1: 1.0}'"}) {
    const Outcome refused = orrery("serve --model qwen2.5-vl-7b" + images + wrong);
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("sizes of images such as")) << wrong;
  }
  const Outcome unread =
      orrery("serve --model qwen2.5-vl-7b --machine dgx-h100 --images-per-prompt 0 --image-size a");
  EXPECT_EQ(unread.status, 2);
  EXPECT_THAT(unread.err, HasSubstr("--image-size: found 'a'"));
  const Outcome half =
      orrery("serve --model qwen2.5-vl-7b --machine dgx-h100 --images-per-prompt 1");
  EXPECT_EQ(half.status, 2);
  EXPECT_THAT(half.err, HasSubstr("--image-size"));
}

}  // namespace
}  // namespace orrery::testing
