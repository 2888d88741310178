// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/requests/generate.h"
#include "serving/requests/trace.h"

namespace orrery::requests {
namespace {

using ::testing::HasSubstr;

TEST(Generate, GapsHaveTheirMeanAndVariation) {
  // Gamma of shape b: mean 1 / rate, coefficient of variation 1 / sqrt(b).
  for (const double burstiness : {0.5, 1.0, 4.0}) {
    Generator generator{.arrival = Arrival::gamma, .rate = 10, .burstiness = burstiness};
    generator.count = 200000;
    const std::vector<Request> requests = generate(generator);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 1; i < requests.size(); ++i) {
      const double gap = to_seconds(requests[i].arrival - requests[i - 1].arrival);
      sum += gap;
      squares += gap * gap;
    }
    const double count = static_cast<double>(requests.size() - 1);
    const double mean = sum / count;
    EXPECT_NEAR(mean, 0.1, 0.002);
    EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / mean, 1 / std::sqrt(burstiness), 0.03);
  }
}

TEST(Generate, LengthsHaveTheirMean) {
  Generator generator{.input = parse_length("lognormal(1000, 0.6)").value(),
                      .output = parse_length("uniform(10, 20)").value()};
  generator.count = 100000;
  double input = 0;
  double output = 0;
  for (const Request& request : generate(generator)) {
    input += static_cast<double>(request.input);
    output += static_cast<double>(request.output);
    EXPECT_GE(request.output, 10);
    EXPECT_LE(request.output, 20);
  }
  EXPECT_NEAR(input / 100000, 1000, 10);
  EXPECT_NEAR(output / 100000, 15, 0.05);
}

TEST(Generate, TheSameSeedIsTheSameLoadAndRatesScaleIt) {
  Generator generator{.count = 10, .seed = 5};
  const std::vector<Request> one = generate(generator);
  generator.rate = 2;
  const std::vector<Request> two = generate(generator);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(to_seconds(one[i].arrival), 2 * to_seconds(two[i].arrival), 1e-9);
    EXPECT_EQ(one[i].input, two[i].input);
  }
}

TEST(Generate, WrongLengthsAreRefused) {
  for (const char* text : {"", "0", "-3", "uniform(5", "uniform(9, 5)", "normal(1, 2)", "1.5",
                           "lognormal(10, x)", "uniform(,)"}) {
    EXPECT_FALSE(parse_length(text).has_value()) << text;
  }
}

TEST(Traces, AzureDatesAreRead) {
  const Trace trace = parse_trace(
                          "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2023-11-16 23:59:59.5000000,4808,10\n"
                          "2023-11-17 00:00:01.2500000,3180,8\n",
                          "azure.csv")
                          .value();
  EXPECT_EQ(trace.kind, "Azure");
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[1].arrival, 1750_ms);
  EXPECT_EQ(trace.requests[0].input, 4808);
}

TEST(Traces, MooncakeBlocksAreShared) {
  const Trace trace =
      parse_trace(
          "{\"timestamp\": 1000, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [3, "
          "4]}\n"
          "{\"timestamp\": 1500, \"input_length\": 600, \"output_length\": 6, \"hash_ids\": [3, "
          "9]}\n",
          "mooncake.jsonl")
          .value();
  EXPECT_EQ(trace.kind, "Mooncake");
  EXPECT_EQ(trace.requests[1].arrival, 500_ms);
  EXPECT_EQ(trace.requests[0].id_tokens, 512);
  EXPECT_EQ(trace.requests[0].shared, 700);
  EXPECT_THAT(trace.requests[1].ids, ::testing::ElementsAre(3U, 9U));
}

TEST(Traces, BurstGptFailuresAreLeftOut) {
  const Trace trace =
      parse_trace(
          "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
          "Type\n5,,1,ChatGPT,472,18,490,Conversation log\n45,,1,ChatGPT,1087,0,1087,API log\n",
          "burst.csv")
          .value();
  EXPECT_EQ(trace.requests.size(), 1U);
  EXPECT_EQ(trace.left_out, 1);
}

TEST(Traces, LlmServingSimNanoseconds) {
  const Trace trace =
      parse_trace(
          "{\"input_toks\": 10, \"output_toks\": 3, \"arrival_time_ns\": 0}\n"
          "{\"input_toks\": 11, \"output_toks\": 4, \"arrival_time_ns\": 2500000}\n",
          "t.jsonl")
          .value();
  EXPECT_EQ(trace.requests[1].arrival, 2500_us);
}

TEST(Traces, MistakesNameTheLine) {
  const auto unknown = parse_trace("a,b\n1,2\n", "x.csv");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("ContextTokens"));
  const auto wrong =
      parse_trace("arrival_timestamp,prompt_size,token_size\n0,10,5\n1,many,5\n", "x.csv");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().to_string(), HasSubstr("x.csv:3"));
  for (const char* text : {"", "{", "{}", "{\"input\": 3}", "{\"input\": 3, \"output\": -1}",
                           "{\"input\": [1], \"output\": 2}"}) {
    EXPECT_FALSE(parse_trace(text, "x").has_value()) << text;
  }
}

}  // namespace
}  // namespace orrery::requests
