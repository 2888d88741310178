// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "serving/metrics.h"
#include "serving/requests/generate.h"
#include "serving/search.h"

namespace orrery::serving {
namespace {

zoo::Model served_model(const char* name) {
  return zoo::load_model(name).value();
}
machine::Machine served_machine(const char* name) {
  return machine::load_machine(name).value();
}

/// A tiny engine, so that memory, seats and budget all bind.
Engine small_engine(bool async) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.async = async;
  engine.blocks = 200;
  engine.max_num_seqs = 8;
  engine.max_num_batched_tokens = 256;
  return engine;
}

requests::Generator small_load(std::int64_t count) {
  requests::Generator generator;
  generator.rate = 20;
  generator.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  generator.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 200};
  generator.count = count;
  return generator;
}

bool same(const serving::Run& a, const serving::Run& b) {
  bool equal = a.requests.size() == b.requests.size() && a.duration == b.duration &&
               a.busy == b.busy && a.totals.ticks == b.totals.ticks &&
               a.totals.preemptions == b.totals.preemptions &&
               a.totals.scheduled_tokens == b.totals.scheduled_tokens &&
               a.totals.cached_tokens == b.totals.cached_tokens &&
               a.totals.fetched_tokens == b.totals.fetched_tokens &&
               a.totals.copied_adapters == b.totals.copied_adapters &&
               a.written_blocks == b.written_blocks && a.peak_running == b.peak_running &&
               a.kv_use_s == b.kv_use_s;
  for (std::size_t i = 0; equal && i < a.requests.size(); ++i) {
    equal = a.requests[i].scheduled == b.requests[i].scheduled &&
            a.requests[i].first == b.requests[i].first &&
            a.requests[i].last == b.requests[i].last &&
            a.requests[i].fetching == b.requests[i].fetching &&
            a.requests[i].stalled == b.requests[i].stalled &&
            a.requests[i].beside == b.requests[i].beside;
  }
  equal = equal && a.samples.size() == b.samples.size();
  for (std::size_t i = 0; equal && i < a.samples.size(); ++i) {
    equal = a.samples[i].running == b.samples[i].running &&
            a.samples[i].waiting == b.samples[i].waiting &&
            a.samples[i].kv_use == b.samples[i].kv_use;
  }
  return equal && statistics(a.gaps).mean == statistics(b.gaps).mean;
}

RC_GTEST_PROP(Serve, SkippingRunsOfDecodesIsSteppingToThePicosecond, ()) {
  // On the second one a step depends on its longest context, too (compute/decode_tiles.h).
  static const std::array machines{served_machine("dgx-h100"), served_machine("dgx-a100-80g")};
  const machine::Machine& machine = machines[*rc::gen::inRange<std::size_t>(0, machines.size())];
  // gpt-oss has layers with windows, which decodes cross; Nemotron-H's states take 198 blocks a
  // request.
  static const std::array models{served_model("llama-3.2-1b"), served_model("gpt-oss-20b"),
                                 served_model("nemotron-h-8b")};
  const auto which = *rc::gen::inRange<std::size_t>(0, models.size());
  const bool recurs = which == 2;
  Engine engine = small_engine(*rc::gen::arbitrary<bool>());
  engine.blocks = *rc::gen::inRange(60, 300) + (recurs ? 600 : 0);
  engine.whole_windows = *rc::gen::arbitrary<bool>();
  engine.max_num_seqs = *rc::gen::inRange(1, 12);
  engine.prefix = *rc::gen::arbitrary<bool>();
  engine.front_end = *rc::gen::element(Time(0), Time(2_ms));
  engine.policy = *rc::gen::element(scheduler::Policy::vllm_v1, scheduler::Policy::trtllm,
                                    scheduler::Policy::sglang, scheduler::Policy::sarathi,
                                    scheduler::Policy::max_utilization, scheduler::Policy::mlfq);
  engine.quantum = *rc::gen::element(1, 7);
  engine.tiers = recurs ? "" : *rc::gen::element("", "host", "host:2 MB,nvme:8 MB");
  engine.prefix = engine.prefix || !engine.tiers.empty();
  engine.adapter_slots = *rc::gen::element(0, 0, 2);
  engine.adapter_rank = 8;
  requests::Generator load = small_load(*rc::gen::inRange(1, 40));
  load.rate = *rc::gen::element(1.0, 30.0, 1000.0);
  load.shared_prefix = *rc::gen::element(0, 50);
  load.turns = *rc::gen::element(1, 3);
  load.think = *rc::gen::element(Time(0), Time(300_ms));
  load.adapters = engine.adapter_slots > 0 ? 4 : 0;
  load.seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000));
  ServeOptions options{.max_concurrency = *rc::gen::element(0, 3)};
  auto server = Server::make(models[which], machine, engine);
  RC_ASSERT(server.has_value());
  const std::vector<requests::Request> requests = requests::generate(load);
  const serving::Run skipped = server->run(requests, options);
  options.skip = false;
  const serving::Run stepped = server->run(requests, options);
  RC_ASSERT(same(skipped, stepped));
}

// Beginnings that were fetched for lower requests held the blocks that the highest one lacked,
// nobody ran, and all that waited was lost in silence.
TEST(Serve, QueuesByLevelTakeBlocksAlsoFromLowerOnesThatWaitWithThem) {
  Engine engine = small_engine(false);
  engine.policy = scheduler::Policy::mlfq;
  engine.quantum = 7;
  engine.tiers = "host";
  engine.prefix = true;
  engine.blocks = 156;
  engine.max_num_seqs = 1;
  requests::Generator load = small_load(34);
  load.rate = 30;
  load.turns = 3;
  load.think = Time(0);
  load.seed = 615;
  const serving::Run run = serve(served_model("llama-3.2-1b"), served_machine("dgx-h100"), engine,
                                 requests::generate(load), {.max_concurrency = 3})
                               .value();
  for (const Served& request : run.requests) {
    EXPECT_FALSE(request.last.is_overflow());
  }
}

TEST(Serve, TokensAndTimesAreOrderedAndConserved) {
  const serving::Run run = serve(served_model("llama-3.2-1b"), served_machine("dgx-h100"),
                                 small_engine(true), requests::generate(small_load(300)))
                               .value();
  ASSERT_EQ(run.requests.size(), 300U);
  std::int64_t work = 0;
  for (const Served& request : run.requests) {
    EXPECT_LE(request.sent, request.queued);
    EXPECT_LE(request.queued, request.scheduled);
    EXPECT_LT(request.scheduled, request.first);
    EXPECT_LE(request.first, request.last);
    work += request.input + request.output - 1;
  }
  EXPECT_EQ(run.totals.scheduled_tokens, work + run.totals.lost_tokens - run.totals.cached_tokens);
  std::int64_t gaps = 0;
  for (const Gap& gap : run.gaps) {
    gaps += gap.count;
  }
  const Metrics m = metrics(run, served_machine("dgx-h100"));
  EXPECT_EQ(gaps, m.output_tokens - m.completed);
}

TEST(Metrics, TheMeanOfKvUseIsWeightedByTime) {
  // One prompt of 40 tokens, blocks of 16: 3 blocks for the prompt, after k decodes
  // ceil((40 + k) / 16). Steps by themselves say for how long; a decode run changes nothing.
  requests::Request only{.ids = {}};
  only.arrival = from_seconds(2.5);
  only.input = 40;
  only.output = 60;
  for (const bool skip : {true, false}) {
    ServeOptions options;
    options.skip = skip;
    options.most_steps = 1000;
    const machine::Machine machine = served_machine("dgx-h100");
    const serving::Run run =
        serve(served_model("llama-3.2-1b"), machine, small_engine(false), {only}, options).value();
    ASSERT_EQ(run.steps.size(), 60U);
    double blocks = 0;
    for (std::size_t k = 0; k < run.steps.size(); ++k) {
      const std::size_t held = (40 + k + 15) / 16;
      blocks += static_cast<double>(held) * to_seconds(run.steps[k].end - run.steps[k].begin);
    }
    const double seconds = to_seconds(run.requests[0].last - run.requests[0].sent);
    EXPECT_NEAR(metrics(run, machine).mean_kv_use,
                blocks / seconds / static_cast<double>(run.kv_blocks), 1e-12);
  }
}

TEST(Serve, AnArrivalDuringAStepWaitsForTheRestOfItAndTheNext) {
  // One request decodes; another arrives. Synchronous: it joins the next step. Asynchronous: that
  // one is formed already, it joins the one after. An idle engine takes it at once in both. So it
  // is with two copies in lockstep, of which the idle one gets it.
  const machine::Machine machine = served_machine("dgx-h100");
  const auto waits = [&](bool async, std::int64_t copies) {
    const zoo::Model model = served_model(copies > 1 ? "qwen3-30b-a3b" : "llama-3.2-1b");
    Engine engine = small_engine(async);
    engine.dp = engine.ep = copies;
    requests::Request first{.ids = {}};
    first.output = 100;
    requests::Request second = first;
    second.arrival = from_seconds(0.0205);  // within a step
    const serving::Run run = serve(model, machine, engine, {first, second}).value();
    EXPECT_EQ(run.requests[0].scheduled, Time(0));
    const Time step = run.requests[0].tpot();
    return to_seconds(run.requests[1].scheduled - run.requests[1].sent) / to_seconds(step);
  };
  for (const std::int64_t copies : {1, 2}) {
    EXPECT_LT(waits(false, copies), 1.01);
    const double async = waits(true, copies);
    EXPECT_GT(async, 1);
    EXPECT_LT(async, 2.01);
  }
}

TEST(Serve, OneSeatAndFixedLengthsIsMD1) {
  // Service time s, utilisation r = rate s: mean wait r s / (2 (1 - r)) (Pollaczek-Khinchine).
  const zoo::Model model = served_model("llama-3.2-1b");
  const machine::Machine machine = served_machine("dgx-h100");
  Engine engine = small_engine(false);
  engine.max_num_seqs = 1;
  requests::Generator load;
  load.input.first = 50;
  load.output.first = 20;
  load.count = 1;
  const double service =
      to_seconds(serve(model, machine, engine, requests::generate(load))->requests[0].latency());
  constexpr double kUse = 0.6;
  load.count = 100000;
  load.rate = kUse / service;
  const Metrics m =
      metrics(serve(model, machine, engine, requests::generate(load)).value(), machine);
  EXPECT_NEAR(to_seconds(m.queue.mean) / (kUse * service / (2 * (1 - kUse))), 1, 0.05);
}

TEST(Serve, NoFasterThanWeightsCanBeRead) {
  // Llama-3.1-8B in bf16: 16 GB without the embedding's 1 GB, at 3.35 TB/s 4.5 ms a token.
  const serving::Run run =
      serve(served_model("llama-3.1-8b"), served_machine("dgx-h100"),
            load_engine("vllm@0.19").value(), {{.input = 100, .output = 50, .ids = {}}})
          .value();
  EXPECT_GT(run.requests[0].tpot(), 4480_us);
  EXPECT_LT(run.requests[0].tpot(), 8_ms);
}

TEST(Serve, NarrowKvDoublesTheBlocks) {
  Engine engine = load_engine("vllm@0.19").value();
  const auto blocks = [&] {
    return Server::make(served_model("llama-3.1-8b"), served_machine("dgx-h100"), engine)
        ->run({})
        .kv_blocks;
  };
  const std::int64_t wide = blocks();
  engine.kv = graph::DataType::fp8;
  EXPECT_NEAR(static_cast<double>(blocks()), 2.0 * static_cast<double>(wide), 2);
}

TEST(Serve, StagesHoldLessAndTakeLongerPerToken) {
  Engine engine = load_engine("vllm@0.10").value();
  const zoo::Model model = served_model("llama-3.1-8b");
  const machine::Machine machine = served_machine("dgx-h100");
  const std::vector<requests::Request> one{{.input = 100, .output = 50, .ids = {}}};
  const serving::Run whole = serve(model, machine, engine, one).value();
  engine.pp = 2;
  const serving::Run staged = serve(model, machine, engine, one).value();
  EXPECT_LT(staged.weights, whole.weights);
  EXPECT_GT(staged.requests[0].tpot(), whole.requests[0].tpot());  // the hop
}

TEST(Serve, CopiesInLockstepServeEveryRequest) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.dp = engine.ep = 8;
  requests::Generator load = small_load(60);
  const serving::Run run = serve(served_model("qwen3-30b-a3b"), served_machine("dgx-h100"), engine,
                                 requests::generate(load))
                               .value();
  EXPECT_EQ(run.requests.size(), 60U);
  EXPECT_EQ(run.devices, 8);
  for (const Served& request : run.requests) {
    EXPECT_LE(request.queued, request.scheduled);
    EXPECT_LT(request.scheduled, request.first);
    EXPECT_LE(request.first, request.last);
  }
}

/// Twenty prompts within 20 ns of one another share all but their first step, and are answered long
/// before the second sample.
TEST(Metrics, ThePeakOfRunningIsOfStepsNotOfWholeSeconds) {
  requests::Generator load;
  load.rate = 1e9;
  load.input = {.kind = requests::Length::Kind::fixed, .first = 100, .second = 0};
  load.output = {.kind = requests::Length::Kind::fixed, .first = 10, .second = 0};
  load.count = 20;
  const machine::Machine machine = served_machine("dgx-h100");
  Engine engine = load_engine("vllm@0.19").value();
  for (const std::int64_t copies : {1, 2}) {  // of two: in lockstep
    engine.dp = engine.ep = copies;
    const serving::Run run =
        serve(served_model("qwen3-30b-a3b"), machine, engine, requests::generate(load)).value();
    ASSERT_LT(run.duration, from_seconds(1));
    EXPECT_EQ(metrics(run, machine).peak_running, 20) << copies;
  }
}

TEST(Speculation, EmitsWhatTheFormulaSays) {
  // Leviathan et al. 2023, eq. 1: (1 - a^(k + 1)) / (1 - a) tokens a pass; a = 0.8, k = 3: 2.952.
  Engine engine = load_engine("vllm@0.19").value();
  const zoo::Model model = served_model("llama-3.1-8b");
  const machine::Machine machine = served_machine("dgx-h100");
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.output.first = 1000;
  load.count = 20;
  const std::vector<requests::Request> requests = requests::generate(load);
  const serving::Run plain = serve(model, machine, engine, requests).value();
  engine.speculation = Speculation::ngram;
  engine.draft_tokens = 3;
  engine.acceptance = 0.8;
  const serving::Run run = serve(model, machine, engine, requests).value();
  const auto passes = static_cast<double>(run.totals.drafted_tokens) / 3;
  EXPECT_NEAR(1 + static_cast<double>(run.totals.accepted_tokens) / passes, 2.952, 0.06);
  // Few requests: a pass with four tokens of each takes hardly longer.
  EXPECT_NEAR(metrics(plain, machine).tpot.mean / metrics(run, machine).tpot.mean, 2.85, 0.15);
  // Prompts and answers as before, and what was guessed wrong.
  EXPECT_EQ(run.totals.scheduled_tokens,
            20 * (1024 + 999) + run.totals.drafted_tokens - run.totals.accepted_tokens);
}

TEST(Speculation, WithoutLuckCostsItsGuesses) {
  // Acceptance 0: one token a pass as without, each pass longer by guessing and verifying.
  const zoo::Model model = served_model("llama-3.1-8b");
  const machine::Machine machine = served_machine("dgx-h100");
  const auto tpot = [&](Speculation method, const char* drafter) {
    Engine engine = load_engine("vllm@0.10").value();
    engine.speculation = method;
    engine.draft_tokens = 2;
    engine.acceptance = 0;
    engine.draft_model = drafter;
    const serving::Run run =
        serve(model, machine, engine, {{.input = 100, .output = 50, .ids = {}}}).value();
    EXPECT_EQ(run.totals.accepted_tokens, 0);
    const bool noted = std::ranges::any_of(run.notes, [](const std::string& note) {
      return note.find("states no layers of multi-token prediction") != std::string::npos;
    });
    EXPECT_EQ(noted, method == Speculation::mtp);
    return run.requests.front().tpot();
  };
  const Time plain = tpot(Speculation::none, "");
  const Time ngram = tpot(Speculation::ngram, "");
  const Time layer = tpot(Speculation::mtp, "");
  const Time small = tpot(Speculation::model, "llama-3.2-1b");
  EXPECT_LE(plain, ngram);
  EXPECT_LT(ngram, layer);
  EXPECT_LT(layer, small);
  // Llama-3.2-1B has 2.5 GB, a layer and the head of the 8B 0.44 + 1.05 GB: at 3.35 TB/s two
  // passes take at least 1.5 and 0.9 ms.
  EXPECT_GT(small - ngram, 1480_us);
  EXPECT_GT(layer - ngram, 880_us);
}

TEST(Serve, WhatDoesNotFitIsSaid) {
  const auto run = serve(served_model("llama-3-70b"), served_machine("dgx-h100"),
                         load_engine("vllm@0.19").value(), {});
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().to_string(), ::testing::HasSubstr("more tp or pp"));
}

TEST(Search, TheRateKeepsTheLimitAndTwoPercentMoreDoesNot) {
  auto server = Server::make(served_model("llama-3.2-1b"), served_machine("dgx-h100"),
                             load_engine("vllm@0.19").value());
  ASSERT_TRUE(server.has_value());
  requests::Generator load = small_load(500);
  const RateSearch search{.objectives = {.tpot = 3_ms}, .attainment = 0.9};
  const RateFound found = search_rate(*server, load, search);
  ASSERT_GT(found.rate, 0);
  EXPECT_GE(found.attained, 0.9);
  load.rate = found.rate * 1.05;
  EXPECT_LT(attainment(server->run(requests::generate(load)), search.objectives), 0.9);
  EXPECT_TRUE(found.limited);
}

TEST(Search, SoFewRequestsThatNoRateIsTooMuchAreSaid) {
  auto server = Server::make(served_model("llama-3.2-1b"), served_machine("dgx-h100"),
                             load_engine("vllm@0.19").value());
  ASSERT_TRUE(server.has_value());
  const RateFound found = search_rate(*server, small_load(5), {.objectives = {.ttft = 10_s}});
  EXPECT_FALSE(found.limited);
  EXPECT_EQ(found.attained, 1);
  EXPECT_EQ(found.run.rate, 0);  // the highest that was tried says nothing
}

TEST(Metrics, PercentilesInterpolateAsNumpy) {
  // numpy.percentile([1, 2, 3, 4], [50, 90]) = 2.5, 3.7
  const std::vector<Time> values{1_s, 2_s, 3_s, 4_s};
  EXPECT_EQ(percentile(values, 0.5), 2500_ms);
  EXPECT_EQ(percentile(values, 0.9), 3700_ms);
  // The same as gaps: 1 once, 2 twice, 4 once: sorted 1 2 2 4.
  const Statistics s = statistics(std::vector<Gap>{{4_s, 1}, {1_s, 1}, {2_s, 2}});
  EXPECT_EQ(s.median, 2_s);
  EXPECT_EQ(s.mean, 2250_ms);
  EXPECT_EQ(s.p90, 3400_ms);  // 2 + 0.7 x 2
}

}  // namespace
}  // namespace orrery::serving
