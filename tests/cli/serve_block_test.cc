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

}  // namespace
}  // namespace orrery::testing
