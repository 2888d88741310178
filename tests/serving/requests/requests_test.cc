// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Traces, SessionsOfLlmServingSimFollowTheirAnswers) {
  const Trace trace =
      parse_trace(
          "{\"session_id\": \"b\", \"arrival_time_ns\": 5000000000, \"sub_requests\": ["
          "{\"input_toks\": 100, \"output_toks\": 20, \"tool_duration_ns\": 3000000000},"
          "{\"input_toks\": 150, \"output_toks\": 10, \"tool_duration_ns\": 1000000000},"
          "{\"input_toks\": 40, \"output_toks\": 5, \"tool_duration_ns\": 0}]}\n"
          "{\"input_toks\": 7, \"output_toks\": 3, \"arrival_time_ns\": 1000000000}\n",
          "test")
          .value();
  ASSERT_EQ(trace.requests.size(), 4U);
  EXPECT_EQ(trace.requests[0].input, 7);  // by arrival; the session 4 s later
  EXPECT_EQ(trace.requests[1].arrival, 4_s);
  EXPECT_EQ(trace.requests[1].after, -1);
  EXPECT_EQ(trace.requests[2].after, 1);
  EXPECT_EQ(trace.requests[2].arrival, 3_s);  // after that answer
  EXPECT_EQ(trace.requests[3].after, 2);
  EXPECT_EQ(trace.requests[3].arrival, 1_s);
  // 150 tokens begin with the 120 before; 40 cannot begin with 160.
  EXPECT_EQ(trace.requests[2].ids, trace.requests[1].ids);
  EXPECT_NE(trace.requests[3].ids, trace.requests[2].ids);
  const auto wrong = parse_trace("{\"sub_requests\": [], \"arrival_time_ns\": 0}\n", "test");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().to_string(), ::testing::HasSubstr("sub_requests"));
}

TEST(Traces, LengthsHaveNoTimesAndConversationsNoLengths) {
  const Trace trace = parse_trace("{\"input\": 10, \"output\": 20}\n", "test").value();
  EXPECT_FALSE(trace.timed);
  EXPECT_TRUE(parse_trace("{\"input\": 10, \"output\": 20, \"arrival_s\": 1}\n", "test")->timed);
  const auto texts = parse_trace("[{\"conversations\": []}]", "test");
  ASSERT_FALSE(texts);
  EXPECT_THAT(texts.error().to_string(), ::testing::HasSubstr("tokenizer"));
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

TEST(Generate, DrawnArrivalsHaveTheRateOfTheRun) {
  // 101 requests at 4 a second, the first at 0: the last comes at 100 / 4 = 25 s, whatever is
  // drawn. 90 turns in sessions of three are 30 sessions, the last at 29 / 4 s.
  for (const Arrival arrival : {Arrival::poisson, Arrival::gamma, Arrival::fixed}) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      Generator load{.arrival = arrival, .rate = 4, .burstiness = 0.5, .count = 101, .seed = seed};
      const std::vector<Request> requests = generate(load);
      EXPECT_EQ(requests.front().arrival, 0_s);
      EXPECT_NEAR(to_seconds(requests.back().arrival), 25, 1e-9);
      load.count = 90;
      load.turns = 3;
      EXPECT_NEAR(to_seconds(generate(load).at(87).arrival), 29.0 / 4, 1e-9);
    }
  }
}

TEST(Generate, StagesHaveTheirRates) {
  // 2 a second for 100 s, 20 for 50 s, 1 for 100 s: 200 + 1000 + 100, Poisson.
  Generator load;
  load.stages = parse_stages("2:100 s,20:50 s,1:100 s").value();
  load.count = 1'000'000;
  const std::vector<Request> requests = generate(load);
  EXPECT_NEAR(static_cast<double>(requests.size()), 1300, 110);  // three deviations
  const auto before = [&](Time end) {
    return static_cast<double>(
        std::count_if(requests.begin(), requests.end(),
                      [&](const Request& request) { return request.arrival < end; }));
  };
  EXPECT_NEAR(before(100_s), 200, 45);
  EXPECT_NEAR(before(150_s), 1200, 105);
  EXPECT_LT(requests.back().arrival, 250_s);
  load.arrival = Arrival::fixed;
  EXPECT_NEAR(static_cast<double>(generate(load).size()), 1300, 3);
  for (const char* wrong : {"", "2", "2:", "2:0 s", "0:1 s", "2:1 s,", "x:1 s"}) {
    EXPECT_FALSE(parse_stages(wrong).has_value()) << wrong;
  }
}

TEST(Generate, TurnsGrowAndShareTheirSession) {
  Generator load;
  load.input.first = 10;
  load.output.first = 5;
  load.shared_prefix = 4;
  load.count = 5;
  load.turns = 3;
  load.think = 7_s;
  const std::vector<Request> requests = generate(load);
  ASSERT_EQ(requests.size(), 5U);  // 3 turns and 2 of the next session
  EXPECT_EQ(requests[0].input, 14);
  EXPECT_EQ(requests[1].input, 14 + 5 + 10);
  EXPECT_EQ(requests[2].input, 29 + 5 + 10);
  EXPECT_EQ(requests[2].after, 1);
  EXPECT_EQ(requests[2].arrival, 7_s);
  EXPECT_EQ(requests[3].after, -1);
  // Tokens 0 to 3 are the group's, others the session's, of the answer too.
  EXPECT_EQ(requests[2].shared, 49);
  EXPECT_EQ(requests[2].ids.size(), 13U);
  EXPECT_EQ(requests[0].ids[0], requests[3].ids[0]);
  EXPECT_EQ(requests[0].ids[1], requests[2].ids[12]);
  EXPECT_NE(requests[0].ids[1], requests[3].ids[1]);
}

}  // namespace
}  // namespace orrery::requests
