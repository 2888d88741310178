// SPDX-License-Identifier: Apache-2.0
// What an engine of copies, stages or pools makes of requests that one engine's times say.
#include "serving/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "serving/breakdown.h"
#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {
namespace {

const zoo::Model& model_of_experts() {
  static const zoo::Model model = zoo::load_model("qwen3-30b-a3b").value();
  return model;
}
const zoo::Model& model_of_mlps() {
  static const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  return model;
}
const machine::Machine& machine_of_both() {
  static const machine::Machine machine = machine::load_machine("dgx-h100").value();
  return machine;
}
Run driven(const zoo::Model& model, const Engine& engine,
           const std::vector<requests::Request>& requests, const ServeOptions& options = {}) {
  return serve(model, machine_of_both(), engine, requests, options).value();
}

/// One request after the other, each when the one before has been answered for long; a request's
/// beginning is that of another 1 to 3 before it.
std::vector<requests::Request> drawn_one_by_one() {
  std::vector<requests::Request> list;
  const auto count = *rc::gen::inRange(1, 12);
  for (std::int64_t i = 0; i < count; ++i) {
    requests::Request request;
    request.arrival = 2_s * i;
    request.input = *rc::gen::inRange(1, 400);
    request.output = *rc::gen::inRange(1, 60);
    request.ids = {static_cast<std::uint64_t>(1 + i % 3)};
    request.id_tokens = request.shared = std::min<std::int64_t>(200, request.input);
    request.adapter = static_cast<std::int32_t>(*rc::gen::inRange(-1, 4));
    list.push_back(std::move(request));
  }
  return list;
}
std::vector<requests::Request> doubled(const std::vector<requests::Request>& list) {
  std::vector<requests::Request> twice;
  for (const requests::Request& request : list) {
    twice.push_back(request);
    twice.push_back(request);
  }
  return twice;
}

void expect_same(const Served& a, const Served& b) {
  RC_ASSERT(a.scheduled == b.scheduled);
  RC_ASSERT(a.first == b.first);
  RC_ASSERT(a.last == b.last);
  RC_ASSERT(a.cached == b.cached);
  RC_ASSERT(a.fetching == b.fetching);
}

/// The step, from 0 on, in which the second of two requests joins the first, which decodes alone
/// when it comes.
std::size_t joining_step(Engine engine, bool skip) {
  engine.async = false;
  std::vector<requests::Request> pair(2);
  pair[0].input = pair[1].input = 100;
  pair[0].output = pair[1].output = 200;
  pair[1].arrival = 100_ms;
  const Run run = driven(model_of_mlps(), engine, pair, {.skip = skip, .most_steps = 1000});
  std::size_t step = 0;
  while (run.steps[step].begin < run.requests[1].scheduled) {
    ++step;
  }
  EXPECT_GT(step, 2U);
  return step;
}

TEST(Driver, AnEngineLooksForRequestsEverySoManySteps) {
  // Of SGLang: counted from the prompt's step on, which is the first.
  Engine engine = load_engine("sglang@0.5").value();
  const std::size_t at_once = joining_step(engine, true);
  engine.recv_interval = 64;
  EXPECT_NE((at_once - 1) % 64, 0U);
  const std::size_t expected = 1 + (at_once - 1 + 63) / 64 * 64;
  EXPECT_EQ(joining_step(engine, true), expected);
  EXPECT_EQ(joining_step(engine, false), expected);
}

TEST(Driver, PromptsWaitForOthersWhileRequestsDecode) {
  // 20 steps, or until they fill 0.9 of 100 tokens.
  Engine engine = load_engine("trtllm@1.0").value();
  const std::size_t at_once = joining_step(engine, true);
  engine.batch_wait_iters = 20;
  EXPECT_EQ(joining_step(engine, true), at_once + 20);
  EXPECT_EQ(joining_step(engine, false), at_once + 20);
  engine.batch_wait_ratio = 0.9;
  engine.max_num_batched_tokens = 100;
  EXPECT_EQ(joining_step(engine, true), at_once);
}

RC_GTEST_PROP(Driver, TwoCopiesWithTheSameRequestsTakeWhatOneTakes, ()) {
  // The other copy is idle or does the same: every rank computes the padded tokens in either case.
  Engine engine = load_engine(*rc::gen::element<std::string>("vllm@0.19", "vllm@0.10")).value();
  engine.dp = engine.ep = 2;
  engine.blocks = *rc::gen::inRange(60, 200);
  engine.max_num_batched_tokens = 256;
  if (*rc::gen::arbitrary<bool>()) {
    engine.adapter_slots = *rc::gen::inRange(1, 3);
    engine.whole_adapters = *rc::gen::arbitrary<bool>();
    engine.blocks = engine.whole_adapters ? 60 : engine.blocks;
  } else {
    engine.tiers = *rc::gen::element("", "host:100 MB", "host:30 MB,nvme:1 GB");
  }
  auto server = Server::make(model_of_experts(), machine_of_both(), engine);
  RC_ASSERT(server.has_value());
  const std::vector<requests::Request> list = drawn_one_by_one();
  const serving::Run one = server->run(list);
  const serving::Run two = server->run(doubled(list));
  RC_ASSERT(two.requests.size() == 2 * one.requests.size());
  for (std::size_t i = 0; i < one.requests.size(); ++i) {
    expect_same(two.requests[2 * i], one.requests[i]);
    expect_same(two.requests[2 * i + 1], one.requests[i]);
  }
  RC_ASSERT(two.duration == one.duration);
  RC_ASSERT(two.copying == one.copying);
  RC_ASSERT(two.written_blocks == 2 * one.written_blocks);
  RC_ASSERT(two.totals.copied_adapters == 2 * one.totals.copied_adapters);
  RC_ASSERT(two.totals.ticks == one.totals.ticks);
}

RC_GTEST_PROP(Driver, TwoEnginesOfCopiesInTurnTakeWhatOneTakes, ()) {
  // Requests in pairs, one for either engine.
  Engine engine = load_engine("vllm@0.19").value();
  engine.async = *rc::gen::arbitrary<bool>();
  engine.dp = engine.ep = 2;
  requests::Generator load;
  load.rate = *rc::gen::element(10.0, 1000.0);
  load.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 50};
  load.count = *rc::gen::inRange(1, 20);
  const std::vector<requests::Request> list = requests::generate(load);
  const serving::Run one = driven(model_of_experts(), engine, list);
  engine.replicas = 2;
  const serving::Run two = driven(model_of_experts(), engine, doubled(list));
  RC_ASSERT(two.devices == 4);
  for (std::size_t i = 0; i < one.requests.size(); ++i) {
    expect_same(two.requests[2 * i], one.requests[i]);
    expect_same(two.requests[2 * i + 1], one.requests[i]);
  }
  RC_ASSERT(two.busy == one.busy);
  RC_ASSERT(two.totals.ticks == 2 * one.totals.ticks);
}

TEST(Driver, LimitsHoldForEnginesOfCopies) {
  // 10 unanswered ones an engine, whatever its copies.
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.count = 40;
  Engine engine = load_engine("vllm@0.19").value();
  engine.dp = engine.ep = 2;
  engine.most_requests = 10;
  const serving::Run run = driven(model_of_experts(), engine, requests::generate(load));
  EXPECT_EQ(run.requests.size(), 10U);
  EXPECT_EQ(run.rejected, 30);
}

TEST(Driver, CopiesFindWhatOthersWroteInTheirStore) {
  // A session's turns go to either copy. With a fast store each finds all that was known.
  machine::Machine fast = machine_of_both();
  fast.network.back().bandwidth = Bandwidth(1e18);
  fast.network.back().latency = fast.network.back().message_overhead = Time(0);
  requests::Generator load;
  load.rate = 20;
  load.output.first = 40;
  load.count = 30;
  load.turns = 3;
  load.think = 100_ms;
  const auto cached = [&](std::int64_t copies, const char* tiers) {
    Engine engine = load_engine("vllm@0.10").value();
    engine.dp = engine.ep = copies;
    engine.blocks = 20'000;
    engine.tiers = tiers;
    return serve(model_of_experts(), fast, engine, requests::generate(load))->totals.cached_tokens;
  };
  const std::int64_t one = cached(1, "");
  EXPECT_LT(cached(2, "host"), one);
  EXPECT_EQ(cached(2, "remote:1 TB"), one);
}

TEST(Driver, APromptTakesWhatAnEngineOfThePoolsDegreesTakes) {
  // A lone request: its first token as in an engine that has the prefill pool's degrees, the others
  // as in one that has the decode pool's, apart from the move. All KV bytes move, whoever has them.
  const std::vector<requests::Request> lone{{.input = 3000, .output = 20, .ids = {}}};
  Engine engine = load_engine("vllm@0.10").value();
  engine.tp = 2;
  for (std::int64_t Engine::*const degree :
       {&Engine::prefill_tp, &Engine::prefill_pp, &Engine::prefill_cp, &Engine::prefill_dp}) {
    const bool copies = degree == &Engine::prefill_dp;
    const zoo::Model& model = copies ? model_of_experts() : model_of_mlps();
    Engine pools = engine;
    pools.prefill = 1;
    pools.*degree = 4;
    const serving::Run both = driven(model, pools, lone);
    Engine alone = pools.for_prompts();
    alone.prefill = 0;
    const serving::Run first = driven(model, alone, lone);
    ASSERT_EQ(both.requests.size(), 1U);
    EXPECT_EQ(both.devices, 2 + first.devices);
    EXPECT_EQ(both.requests[0].first, first.requests[0].first);
    const serving::Run rest = driven(model, engine, lone);
    EXPECT_EQ(both.requests[0].last - both.requests[0].first - both.requests[0].moved,
              rest.requests[0].last - rest.requests[0].first);
    EXPECT_EQ(both.moved_bytes, rest.cache.per_token * 3000 * 2);
  }
}

TEST(Driver, APoolOfTwoCopiesComputesPromptsFasterThanOne) {
  // 64 prompts at once, each a full step: half as many steps, of twice the tokens for the experts.
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.input.first = 8192;
  load.output.first = 2;
  load.count = 64;
  Engine engine = load_engine("vllm@0.19").value();
  engine.max_num_batched_tokens = 8192;
  engine.prefill = 1;
  const auto last_first = [&](std::int64_t copies) {
    engine.prefill_dp = copies;
    Time last{0};
    for (const Served& request :
         driven(model_of_experts(), engine, requests::generate(load)).requests) {
      last = std::max(last, request.first);
    }
    return last;
  };
  EXPECT_LT(last_first(2), last_first(1) * 0.75);
}

TEST(Driver, APoolWithoutCopiesHasNoTwoBatches) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.two_batch = true;
  engine.dp = 4;
  EXPECT_TRUE(engine.for_prompts().two_batch);
  engine.prefill_dp = 1;
  EXPECT_FALSE(engine.for_prompts().two_batch);
}

TEST(Driver, CopiesOfAttentionShareDevicesForMlps) {
  // Two copies, which a dense model has only so, and two devices for MLPs: room for more keys and
  // values than on one device with all weights; every answer is complete; of pools the engines for
  // prompts have none.
  requests::Generator load;
  load.rate = 50;
  load.output.first = 20;
  load.count = 30;
  Engine engine = load_engine("vllm@0.10").value();
  const serving::Run whole = driven(model_of_mlps(), engine, requests::generate(load));
  engine.dp = 2;
  engine.ffn = 2;
  const serving::Run apart = driven(model_of_mlps(), engine, requests::generate(load));
  EXPECT_EQ(apart.devices, 4);
  EXPECT_GT(apart.kv_blocks, whole.kv_blocks);
  EXPECT_EQ(apart.requests.size(), 30U);
  for (const Served& request : apart.requests) {
    EXPECT_GT(request.last, request.first);
  }
  engine.prefill = 1;
  engine.prefill_dp = 1;
  EXPECT_EQ(engine.devices(), 5);
  EXPECT_EQ(driven(model_of_mlps(), engine, requests::generate(load)).requests.size(), 30U);
}

TEST(Driver, EveryEngineOfPoolsCopiesAnAdapterOnce) {
  requests::Generator load;
  load.rate = 50;
  load.adapters = 1;
  load.output.first = 20;
  load.count = 30;
  Engine engine = load_engine("vllm@0.10").value();
  engine.adapter_slots = 2;
  engine.prefill = 2;
  engine.replicas = 3;
  EXPECT_EQ(driven(model_of_mlps(), engine, requests::generate(load)).totals.copied_adapters, 5);
}

TEST(Driver, ATurnsBeginningComesFromTheStoreToThePoolForPrompts) {
  // Prompts of 160 and, a second after the answer, 160 + 33 + 160 = 353 tokens. The store has the
  // full blocks of what the decoding engine computed, 192 tokens: only the rest is computed.
  requests::Generator load;
  load.rate = 1;
  load.input.first = 160;
  load.output.first = 33;
  load.count = 2;
  load.turns = 2;
  load.think = 1_s;
  Engine engine = load_engine("vllm@0.10").value();
  engine.prefill = 1;
  engine.tp = 2;
  engine.prefill_tp = 1;
  const auto computed = [&](const char* tiers) {
    engine.tiers = tiers;
    return driven(model_of_mlps(), engine, requests::generate(load)).totals;
  };
  const scheduler::Totals alone = computed("");
  const scheduler::Totals stored = computed("remote:1 GB");
  EXPECT_EQ(stored.fetched_tokens, 192 - 160);  // 160 are still in the cache of its own
  EXPECT_EQ(alone.scheduled_tokens - stored.scheduled_tokens, 192 - 160);
}

TEST(Driver, PartsOfTheTimesOfCopiesAreTheWhole) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.dp = engine.ep = 2;
  engine.blocks = 100;
  engine.max_num_batched_tokens = 256;
  requests::Generator load;
  load.rate = 100;
  load.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 200};
  load.count = 60;
  const serving::Run run = driven(model_of_experts(), engine, requests::generate(load));
  const Breakdown where = breakdown(run);
  double sum = 0;
  for (const TimePart& part : where.tpot) {
    EXPECT_GE(part.mean, Time(0)) << part.name;
    sum += to_seconds(part.mean);
  }
  EXPECT_NEAR(sum, to_seconds(metrics(run, machine_of_both()).tpot.mean), 1e-9);
  EXPECT_GT(where.tpot[1].mean, Time(0));  // 100 blocks of a copy: some are preempted
  EXPECT_GT(where.tpot[2].mean, Time(0));
}

TEST(Driver, DegreesOfAPoolThatDoNotGoTogetherAreNamed) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  engine.prefill_cp = 2;
  engine.prefill_pp = 2;
  const auto refused = Server::make(model_of_mlps(), machine_of_both(), engine);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), testing::HasSubstr("fleet.prefill_cp: found '2'"));
}

}  // namespace
}  // namespace orrery::serving
