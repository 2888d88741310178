// SPDX-License-Identifier: Apache-2.0
#include "serving/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {
namespace {

const zoo::Model& small_model() {
  static const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  return model;
}
const machine::Machine& dgx() {
  static const machine::Machine machine = machine::load_machine("dgx-h100").value();
  return machine;
}

/// Memory, seats and budget all bind.
Engine drawn_engine() {
  Engine engine = load_engine("vllm@0.19").value();
  engine.async = *rc::gen::arbitrary<bool>();
  engine.blocks = *rc::gen::inRange(60, 200);
  engine.max_num_seqs = *rc::gen::inRange(2, 9);
  engine.max_num_batched_tokens = 256;
  engine.policy = *rc::gen::element(scheduler::Policy::vllm_v1, scheduler::Policy::trtllm,
                                    scheduler::Policy::sglang, scheduler::Policy::sarathi,
                                    scheduler::Policy::max_utilization);
  engine.router = *rc::gen::element(Router::round_robin, Router::least_requests,
                                    Router::least_tokens, Router::prefix_aware);
  return engine;
}

std::vector<requests::Request> drawn_requests() {
  requests::Generator load;
  load.rate = *rc::gen::element(1.0, 100.0, 2000.0);
  load.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 100};
  load.count = *rc::gen::inRange(1, 40);
  load.shared_prefix = *rc::gen::element(0, 100);
  load.prefix_groups = 3;
  load.seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000));
  return requests::generate(load);
}

bool same_times(const Run& a, const Run& b) {
  bool equal = a.requests.size() == b.requests.size() && a.duration == b.duration &&
               a.totals.ticks == b.totals.ticks && a.busy == b.busy &&
               a.totals.preemptions == b.totals.preemptions;
  for (std::size_t i = 0; equal && i < a.requests.size(); ++i) {
    equal = a.requests[i].scheduled == b.requests[i].scheduled &&
            a.requests[i].first == b.requests[i].first &&
            a.requests[i].last == b.requests[i].last && a.requests[i].moved == b.requests[i].moved;
  }
  return equal;
}

/// Copies of attention share experts, stages and ranks of a context do not go with them.
const zoo::Model& draw_degrees(Engine& engine) {
  static const zoo::Model experts = zoo::load_model("qwen3-30b-a3b").value();
  const auto kind = *rc::gen::inRange(0, 4);
  engine.pp = kind == 1 ? 2 : 1;
  engine.cp = kind == 2 ? 2 : 1;
  engine.dp = kind == 3 ? 2 : 1;
  engine.ep = kind == 3 ? engine.tp * engine.dp : 1;
  return kind == 3 ? experts : small_model();
}

RC_GTEST_PROP(Fleet, OfOneIsTheEngineAlone, ()) {
  Engine engine = drawn_engine();
  const zoo::Model& model = draw_degrees(engine);
  auto server = Server::make(model, dgx(), engine);
  RC_ASSERT(server.has_value());
  const std::vector<requests::Request> requests = drawn_requests();
  const ServeOptions options{.max_concurrency = *rc::gen::element(0, 3)};
  const serving::Run alone = server->run(requests, options);
  const serving::Run empty = server->run({});
  serving::Run run = empty;
  Client client(requests, options.max_concurrency, options.think, engine.front_end);
  Fleet fleet(run, {.one = &empty, .cost = &server->cost()}, requests, client, options);
  fleet.run_until(Time::max());
  fleet.join();
  RC_ASSERT(same_times(run, alone));
  RC_ASSERT(run.samples.size() == alone.samples.size());
}

RC_GTEST_PROP(Fleet, EveryTokenIsComputedOnceWhereverItIs, ()) {
  // As of one engine: sum (p + o - 1) + lost - found, whichever pool computes them; what is found
  // where it decodes is not moved, but was computed. And skipping runs of decodes changes nothing.
  Engine engine = drawn_engine();
  engine.replicas = *rc::gen::inRange(1, 4);
  engine.prefill = *rc::gen::inRange(0, 3);
  engine.tp = *rc::gen::element(1, 2);
  const zoo::Model& model = draw_degrees(engine);
  engine.prefill_tp = *rc::gen::element(0, 1, 4);
  if (&model != &small_model()) {
    engine.prefill_dp = *rc::gen::element(0, 1, 2);
  } else if (engine.cp == 1) {
    engine.prefill_pp = *rc::gen::element(0, 1, 4);
  } else {
    engine.prefill_cp = *rc::gen::element(0, 1, 4);
  }
  engine.adapter_slots = *rc::gen::element(0, 0, 2);
  engine.tiers = engine.adapter_slots > 0 ? "" : *rc::gen::element("", "host:20 MB");
  if (engine.prefill == 0 && *rc::gen::arbitrary<bool>()) {
    engine.most_replicas = engine.replicas + 2;
    engine.target_requests = *rc::gen::inRange(1, 4);
    engine.start_up = *rc::gen::element(Time(0), Time(50_ms));
    engine.cool_down = 20_ms;
  }
  auto server = Server::make(model, dgx(), engine);
  RC_ASSERT(server.has_value());
  std::vector<requests::Request> requests = drawn_requests();
  for (std::size_t i = 0; engine.adapter_slots > 0 && i < requests.size(); ++i) {
    requests[i].adapter = static_cast<std::int32_t>(i % 3);
  }
  ServeOptions options{.max_concurrency = *rc::gen::element(0, 5)};
  const serving::Run run = server->run(requests, options);
  RC_ASSERT(run.requests.size() + static_cast<std::size_t>(run.refused) == requests.size());
  std::int64_t work = 0;
  std::int64_t answers = 0;
  for (const Served& request : run.requests) {
    RC_ASSERT(request.sent <= request.queued && request.queued <= request.scheduled);
    RC_ASSERT(request.scheduled < request.first && request.first <= request.last);
    work += request.input + request.output - 1;
    answers += request.output;
  }
  std::int64_t wanted = 0;
  for (const requests::Request& request : requests) {
    wanted += request.output;
  }
  RC_ASSERT(run.refused > 0 || answers == wanted);
  // A request that is preempted with its last token on its way (async) is not computed again.
  if (!engine.async && (engine.prefill == 0 || requests.front().shared == 0)) {
    RC_ASSERT(run.totals.scheduled_tokens ==
              work + run.totals.lost_tokens - run.totals.cached_tokens);
  }
  options.skip = false;
  RC_ASSERT(same_times(run, server->run(requests, options)));
}

TEST(Fleet, DecodingIsFreeOfPromptsInItsOwnPool) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  engine.replicas = 2;
  auto server = Server::make(small_model(), dgx(), engine);
  ASSERT_TRUE(server.has_value());
  requests::Generator load;
  load.rate = 50;
  load.input.first = 1000;
  load.output.first = 50;
  load.count = 300;
  const serving::Run run = server->run(requests::generate(load), {.most_steps = 100000});
  ASSERT_EQ(run.requests.size(), 300U);
  EXPECT_EQ(run.devices, 3);
  for (const StepRecord& step : run.steps) {
    if (step.engine > 0) {
      EXPECT_EQ(step.tokens, step.requests);
    }
  }
  // 16 layers x 8 heads x 64 x 2 x 2 bytes = 32 KiB a token, a thousand of them: 32.8 MB at the
  // 450 GB/s of a GPU's links 73 us and their latency, when nothing else is on the way.
  EXPECT_EQ(run.moved_bytes, 300 * 1000 * Bytes(32768));
  for (const Served& request : run.requests) {
    EXPECT_GT(request.moved, 72_us);
  }
  const Metrics m = metrics(run, dgx());
  EXPECT_LT(m.moved.median, 100_us);
}

TEST(Fleet, TransfersAndCollectivesHaveHalfOfTheirLinksEach) {
  // Request 0 decodes while the keys and values of request 1 come over the same NVLink ports. A
  // step that begins meanwhile is longer by its collectives c, two sums of a token's 2,048 numbers
  // in each of 16 layers; the transfer takes 1 + c / T times as long as into an engine that waits.
  // Of 60,000 tokens, 16 KiB each on either rank, 983 MB take 2.2 ms at 450 GB/s, so its latency is
  // nothing.
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  engine.tp = 2;
  auto server = Server::make(small_model(), dgx(), engine);
  ASSERT_TRUE(server.has_value());
  const requests::Request decodes{.input = 100, .output = 3000, .ids = {}};
  requests::Request moves{.arrival = 100_ms, .input = 60'000, .output = 2, .ids = {}};
  const serving::Run both = server->run({decodes, moves}, {.most_steps = 100'000});
  const serving::Run alone = server->run({moves});
  ASSERT_EQ(both.requests.size(), 2U);
  const Served& moved = both.requests[1];
  Time before{0};
  Time during{0};
  for (const StepRecord& step : both.steps) {
    const bool meets = step.begin >= moved.first && step.begin < moved.first + moved.moved;
    if (step.engine == 1 && step.tokens == 1) {
      (meets ? during : before) = step.end - step.begin;
    }
    if (meets && step.engine == 1) {
      break;
    }
  }
  const machine::Machine pair = machine::with_devices(dgx(), 2).value();
  const Time sum = collective::collective_time(graph::CollectiveKind::all_reduce, Bytes(2 * 2048),
                                               collective::extents_of(1, 2, pair),
                                               collective::CollectiveAlgorithm::custom, pair);
  EXPECT_NEAR(to_seconds(during - before) / to_seconds(2 * 16 * sum), 1, 0.01);
  EXPECT_NEAR(moved.moved / alone.requests[0].moved, 1 + 2 * 16 * sum / before, 0.005);
}

TEST(Fleet, StepsMeetATransferAfterItsHandOver) {
  // Request 0 decodes for 100 ms after the prompt of request 1, which then moves: none of the steps
  // until then is longer than those before.
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  engine.tp = 2;
  engine.handover = 100_ms;
  auto server = Server::make(small_model(), dgx(), engine);
  ASSERT_TRUE(server.has_value());
  const requests::Request decodes{.input = 100, .output = 3000, .ids = {}};
  const requests::Request moves{.arrival = 100_ms, .input = 60'000, .output = 2, .ids = {}};
  const serving::Run run = server->run({decodes, moves}, {.most_steps = 100'000});
  const Time begins = run.requests[1].first + engine.handover;
  Time before = Time::max();
  Time waiting{0};
  Time moving{0};
  for (const StepRecord& step : run.steps) {
    if (step.engine == 1 && step.tokens == 1) {
      const Time took = step.end - step.begin;
      if (step.begin < run.requests[1].first) {
        before = took;
      } else if (step.begin < begins) {
        waiting = took;
      } else if (moving == Time(0)) {
        moving = took;
      }
    }
  }
  EXPECT_LT(waiting, before * 1.01);  // a longer context
  EXPECT_GT(moving, waiting * 1.02);
}

TEST(Fleet, TransfersAsPacketsTakeAboutAsLongAsFlows) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  requests::Generator load;
  load.rate = 200;
  load.input.first = 500;
  load.output.first = 20;
  load.count = 20;
  const auto moved = [&](std::optional<simulate::NetworkModel> network) {
    engine.network = network;
    const serving::Run run =
        Server::make(small_model(), dgx(), engine)->run(requests::generate(load));
    EXPECT_EQ(run.requests.size(), 20U);
    return to_seconds(metrics(run, dgx()).moved.mean);
  };
  EXPECT_NEAR(moved(simulate::NetworkModel::packet) / moved({}), 1, 0.1);
}

TEST(Fleet, ReplicasServeMoreThanOne) {
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.count = 4 * 16 * 8;  // whole batches
  const std::vector<requests::Request> requests = requests::generate(load);
  Engine engine = load_engine("vllm@0.19").value();
  engine.max_num_seqs = 16;
  const auto tokens = [&](std::int64_t replicas) {
    engine.replicas = replicas;
    return metrics(Server::make(small_model(), dgx(), engine)->run(requests), dgx())
        .output_tokens_per_s;
  };
  EXPECT_NEAR(tokens(4) / tokens(1), 4, 0.2);
}

TEST(Fleet, ARouterThatKnowsPrefixesFindsMoreOfThem) {
  requests::Generator load;
  load.rate = 20;
  load.shared_prefix = 2000;
  load.prefix_groups = 7;
  load.input.first = 50;
  load.output.first = 20;
  load.count = 300;
  const std::vector<requests::Request> requests = requests::generate(load);
  Engine engine = load_engine("vllm@0.19").value();
  engine.replicas = 4;
  const auto found = [&](Router router) {
    engine.router = router;
    return Server::make(small_model(), dgx(), engine)->run(requests).totals.cached_tokens;
  };
  // In turn every engine computes each of the 7 prefixes: 28 times. An idle engine without it may
  // still be preferred to a busy one with it.
  EXPECT_EQ(found(Router::round_robin), (300 - 28) * 2000);
  EXPECT_GE(found(Router::prefix_aware), (300 - 20) * 2000);
}

TEST(Fleet, ARouterRejectsWhatIsTooMuch) {
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.count = 100;
  Engine engine = load_engine("vllm@0.19").value();
  engine.replicas = 2;
  engine.most_requests = 10;
  const serving::Run run =
      Server::make(small_model(), dgx(), engine)->run(requests::generate(load));
  EXPECT_EQ(run.requests.size(), 20U);
  EXPECT_EQ(run.rejected, 80);
  EXPECT_EQ(attainment(run, {.ttft = 100_s}), 0.2);  // a rejected request keeps no limit
}

TEST(Fleet, ATokenBucketLetsInItsBurstAndThenItsRate) {
  requests::Generator load;
  load.arrival = requests::Arrival::fixed;
  load.rate = 10;
  load.count = 101;  // in 10 s
  Engine engine = load_engine("vllm@0.19").value();
  engine.admit_rate = 2;
  engine.admit_burst = 5;
  // 5 at once and 2 a second for 10 s.
  const serving::Run run =
      Server::make(small_model(), dgx(), engine)->run(requests::generate(load));
  EXPECT_NEAR(static_cast<double>(run.requests.size()), 25, 1);
  EXPECT_EQ(run.requests.size() + static_cast<std::size_t>(run.rejected), 101U);
}

TEST(Fleet, EnginesFollowTheLoad) {
  // One unanswered request an engine, 1 to 3 of them, 10 s to start, 30 s to stop. Four requests at
  // 0 find one engine; those at 20 s find three, idle; the last, at 100 s, one again.
  Engine engine = load_engine("vllm@0.19").value();
  engine.most_replicas = 3;
  engine.target_requests = 1;
  engine.start_up = 10_s;
  engine.cool_down = 30_s;
  engine.router = Router::least_requests;
  std::vector<requests::Request> load;
  for (const Time at :
       {Time(0), Time(0), Time(0), Time(0), Time(20_s), Time(20_s), Time(20_s), Time(100_s)}) {
    load.push_back({.arrival = at, .input = 1000, .output = 200, .ids = {}});
  }
  const serving::Run run = Server::make(small_model(), dgx(), engine)->run(load);
  ASSERT_EQ(run.requests.size(), 8U);
  EXPECT_EQ(run.started, 2);
  // A prompt alone takes as long as any other alone.
  EXPECT_EQ(run.requests[4].ttft(), run.requests[7].ttft());
  EXPECT_EQ(run.requests[6].ttft(), run.requests[7].ttft());
  EXPECT_GT(run.requests[3].ttft(), run.requests[7].ttft());
  // The first until the end, two until 30 s after the answers of the second wave.
  const Time second = run.requests[4].last + engine.cool_down;
  EXPECT_EQ(run.held, run.duration + 2 * second);
  // Paid for what is held: less than three engines for all of the time.
  const Metrics m = metrics(run, dgx());
  engine.most_replicas = engine.target_requests = 0;
  engine.replicas = 3;
  const serving::Run fixed = Server::make(small_model(), dgx(), engine)->run(load);
  EXPECT_LT(m.energy->value(), metrics(fixed, dgx()).energy->value());
}

TEST(Fleet, AnAnswerCutToOneTokenEndsWithItsPrompt) {
  // 1024 of 1025 positions are prompt: the first token, of the engine for prompts, is the last.
  Engine engine = load_engine("vllm@0.19").value();
  engine.max_model_len = 1025;
  engine.prefill = 1;
  const serving::Run run =
      Server::make(small_model(), dgx(), engine)->run({{.input = 1024, .output = 10, .ids = {}}});
  ASSERT_EQ(run.requests.size(), 1U);
  EXPECT_EQ(run.requests[0].last, run.requests[0].first);
  EXPECT_EQ(run.moved_bytes, Bytes(0));
}

}  // namespace
}  // namespace orrery::serving
