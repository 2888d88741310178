// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "serving/breakdown.h"
#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {
namespace {

zoo::Model session_model(const char* name) {
  return zoo::load_model(name).value();
}
machine::Machine session_machine(const char* name) {
  return machine::load_machine(name).value();
}

TEST(Adapters, TakeMemoryAndTime) {
  // Rank 16 on every matrix of Llama-3.1-8B: 41,943,040 parameters, in 2 bytes.
  const zoo::Model model = session_model("llama-3.1-8b");
  const machine::Machine machine = session_machine("dgx-h100");
  Engine engine = load_engine("vllm@0.10").value();
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.count = 64;
  const serving::Run plain = serve(model, machine, engine, requests::generate(load)).value();
  engine.adapter_slots = 8;
  const auto with = [&](std::int64_t adapters) {
    load.adapters = adapters;
    return serve(model, machine, engine, requests::generate(load)).value();
  };
  const serving::Run unused = with(0);
  EXPECT_EQ(unused.adapter, Bytes(2 * 41'943'040));
  EXPECT_NEAR(static_cast<double>(plain.kv_blocks - unused.kv_blocks),
              8.0 * 2 * 41'943'040 / (16 * 131'072), 1);
  EXPECT_EQ(unused.requests[0].tpot(), plain.requests[0].tpot());
  const serving::Run one = with(1);
  EXPECT_EQ(one.totals.copied_adapters, 1);
  // 84 MB at 51.2 GB/s and 10 us.
  EXPECT_NEAR(to_seconds(one.copying), 83'886'080 / 51.2e9 + 10e-6, 1e-9);
  EXPECT_GT(one.requests[0].tpot(), unused.requests[0].tpot());
  const serving::Run eight = with(8);
  EXPECT_GT(eight.requests[0].tpot(), one.requests[0].tpot());
  // 32 of them in 8 places: others come and go.
  const serving::Run many = with(32);
  EXPECT_EQ(many.requests.size(), 64U);
  EXPECT_GE(many.totals.copied_adapters, 25);
  EXPECT_GT(many.duration, eight.duration);
}

TEST(Breakdown, PartsAreTheWhole) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.blocks = 200;
  engine.max_num_seqs = 8;
  engine.max_num_batched_tokens = 256;
  engine.front_end = 2_ms;
  engine.tiers = "host";
  requests::Generator load;
  load.rate = 20;
  load.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 200};
  load.count = 200;
  load.turns = 3;
  const serving::Run run = serve(session_model("llama-3.2-1b"), session_machine("dgx-h100"), engine,
                                 requests::generate(load))
                               .value();
  const Metrics m = metrics(run, session_machine("dgx-h100"));
  const Breakdown where = breakdown(run);
  const auto sum = [](const std::array<TimePart, 4>& parts) {
    double total = 0;
    for (const TimePart& part : parts) {
      EXPECT_GE(part.mean, Time(0)) << part.name;
      total += to_seconds(part.mean);
    }
    return total;
  };
  EXPECT_NEAR(sum(where.ttft), to_seconds(m.ttft.mean), 1e-9);
  EXPECT_NEAR(sum(where.tpot), to_seconds(m.tpot.mean), 1e-9);
  EXPECT_EQ(where.ttft[0].mean, 2_ms);
  EXPECT_GT(where.ttft[1].mean, Time(0));  // fetched turns
  EXPECT_GT(where.tpot[1].mean, Time(0));  // 200 blocks: some are preempted
  EXPECT_GT(where.tpot[2].mean, Time(0));
}

TEST(Sessions, ATurnComesAfterTheAnswerAndFindsItsBeginning) {
  requests::Generator load;
  load.rate = 1;
  load.input.first = 160;
  load.output.first = 33;
  load.count = 6;
  load.turns = 3;
  load.think = 1_s;
  const serving::Run run = serve(session_model("llama-3.2-1b"), session_machine("dgx-h100"),
                                 load_engine("vllm@0.10").value(), requests::generate(load))
                               .value();
  ASSERT_EQ(run.requests.size(), 6U);
  std::map<std::int64_t, std::vector<const Served*>> by_input;
  for (const Served& request : run.requests) {
    by_input[request.input].push_back(&request);
  }
  // Prompts of 160, 160 + 33 + 160 = 353 and 546 tokens; of turn 2 the 192 computed of turn 1 are
  // found, 12 blocks of 16; of turn 3 385 - 1, 24 blocks.
  ASSERT_EQ(by_input.size(), 3U);
  for (const auto& [input, cached] : {std::pair{160, 0}, {353, 192}, {546, 384}}) {
    for (const Served* request : by_input[input]) {
      EXPECT_EQ(request->cached, cached);
    }
  }
  EXPECT_EQ(by_input[353][0]->sent, by_input[160][0]->last + 1_s);
}

}  // namespace
}  // namespace orrery::serving
