// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace orrery::scheduler {
namespace {

using ::testing::ElementsAre;

RequestSpec spec(std::int64_t prompt, std::int64_t output) {
  return {.prompt = prompt, .output = output, .prefix = {}};
}

/// "1:20 2:12": requests from 1 on.
std::string text(const Tick& tick) {
  std::string line;
  for (const Scheduled& entry : tick.entries) {
    line += fmt::format("{}{}:{}", line.empty() ? "" : " ", entry.request + 1, entry.tokens);
  }
  return line;
}

/// All ticks without lookahead; every tick within its limits, all blocks free at the end.
/// `arrivals`: requests that join before their ticks (from 1 on).
std::vector<std::string> run(Scheduler& scheduler,
                             std::vector<std::pair<std::size_t, RequestSpec>> arrivals = {}) {
  std::vector<std::string> lines;
  std::vector<RequestIndex> finished;
  while (!arrivals.empty() || !scheduler.waiting().empty() || !scheduler.running().empty()) {
    while (!arrivals.empty() && arrivals.front().first == lines.size() + 1) {
      scheduler.add(arrivals.front().second);
      arrivals.erase(arrivals.begin());
    }
    const Tick& tick = scheduler.schedule();
    EXPECT_FALSE(tick.empty());
    EXPECT_LE(tick.tokens, scheduler.limits().max_num_batched_tokens);
    EXPECT_LE(std::ssize(tick.entries), scheduler.limits().max_num_seqs);
    EXPECT_TRUE(scheduler.book().consistent());
    lines.push_back(text(tick));
    scheduler.complete(tick, finished);
    if (tick.empty()) {
      break;
    }
  }
  EXPECT_EQ(scheduler.book().used(), 0);
  return lines;
}

TEST(VllmV1, FillsTheBudgetWithChunks) {
  // Budget 32. Tick 1: all of request 1, 12 of 40 of request 2. Tick 2: one decode, the 28 left of
  // request 2, 3 of request 3's 10. Tick 3: its 7 left. Tick 4: its second token. 74 = 20 + 40 + 10
  // + (3 + 2 + 2 - 3).
  const auto scheduler = make_scheduler(
      Policy::vllm_v1, {.max_num_batched_tokens = 32, .max_num_seqs = 256}, {100, 16, true});
  scheduler->add(spec(20, 3));
  scheduler->add(spec(40, 2));
  scheduler->add(spec(10, 2));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:20 2:12", "1:1 2:28 3:3", "1:1 2:1 3:7", "3:1"));
  EXPECT_EQ(scheduler->totals().scheduled_tokens, 74);
}

/// 4 blocks of 16; both prompts have 31 tokens and fill 2 blocks with their 32nd. In tick 3 request
/// 1 needs a third block: request 2 gives way and loses 32 computed tokens.
std::vector<std::string> preempting(bool prefix_cache, Totals& totals) {
  const auto scheduler = make_scheduler(
      Policy::vllm_v1, {.max_num_batched_tokens = 128, .max_num_seqs = 256}, {4, 16, prefix_cache});
  scheduler->add(spec(31, 10));
  scheduler->add(spec(31, 10));
  std::vector<std::string> lines = run(*scheduler);
  totals = scheduler->totals();
  return lines;
}

TEST(VllmV1, PreemptsTheLastAndFindsWhatIsLeftOfIt) {
  // Its first block was freed last, so request 1 took the second: 16 of 33 tokens are found again.
  Totals totals;
  EXPECT_THAT(preempting(true, totals),
              ElementsAre("1:31 2:31", "1:1 2:1", "1:1", "1:1", "1:1", "1:1", "1:1", "1:1", "1:1",
                          "1:1", "2:17", "2:1", "2:1", "2:1", "2:1", "2:1", "2:1", "2:1"));
  EXPECT_EQ(totals.scheduled_tokens, 96);
  EXPECT_EQ(totals.preemptions, 1);
  EXPECT_EQ(totals.lost_tokens, 32);
  EXPECT_EQ(totals.cached_tokens, 16);
}

TEST(VllmV1, WithoutPrefixCacheAllIsComputedAgain) {
  Totals totals;
  const std::vector<std::string> lines = preempting(false, totals);
  EXPECT_EQ(lines.size(), 18u);
  EXPECT_EQ(lines[10], "2:33");
  EXPECT_EQ(totals.scheduled_tokens, 112);
}

TEST(VllmV1, SharedPromptIsComputedOnce) {
  // 40 shared tokens of 41 are two full blocks of 16: the second request computes 9.
  const auto scheduler = make_scheduler(Policy::vllm_v1, {}, {100, 16, true});
  RequestSpec shared = spec(41, 1);
  shared.prefix = {.ids = {7}, .id_tokens = 40, .tokens = 40};
  scheduler->add(shared);
  scheduler->add(shared);
  EXPECT_THAT(run(*scheduler), ElementsAre("1:41 2:9"));
}

TEST(VllmV1, LastTokenOfAPromptIsAlwaysComputed) {
  // 32 tokens are two full blocks, of which at most 31 tokens may be found: one block.
  const auto scheduler = make_scheduler(Policy::vllm_v1, {}, {100, 16, true});
  RequestSpec shared = spec(32, 1);
  shared.prefix = {.ids = {7}, .id_tokens = 32, .tokens = 32};
  scheduler->add(shared);
  scheduler->add(shared);
  EXPECT_THAT(run(*scheduler), ElementsAre("1:32 2:16"));
}

TEST(VllmV0, RunsPromptsAlone) {
  const auto scheduler = make_scheduler(
      Policy::vllm_v0, {.max_num_batched_tokens = 32, .max_num_seqs = 256}, {100, 16, false});
  scheduler->add(spec(20, 3));
  scheduler->add(spec(20, 2));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:20", "2:20", "1:1 2:1", "1:1"));
}

TEST(Orca, MixesWholePromptsAndNeverPreempts) {
  // 4 blocks: request 1 reserves 40 / 16 = 3, so that request 2 waits for its end.
  const auto scheduler = make_scheduler(Policy::orca, {}, {4, 16, false});
  scheduler->add(spec(31, 3));
  scheduler->add(spec(31, 3));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:31", "1:1", "1:1", "2:31", "2:1", "2:1"));
}

TEST(Sarathi, FillsWithChunksWhatDecodesLeave) {
  // Budget 16. Request 2's 40 tokens: 6 beside 10 of request 1, then 15, 15 and 4 beside its
  // decodes.
  const auto scheduler = make_scheduler(
      Policy::sarathi, {.max_num_batched_tokens = 16, .max_num_seqs = 256}, {100, 16, false});
  scheduler->add(spec(10, 4));
  scheduler->add(spec(40, 2));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:10 2:6", "1:1 2:15", "1:1 2:15", "1:1 2:4", "2:1"));
}

TEST(MaxUtilization, PausesTheLastAndGivesDecodesTheirTokensFirst) {
  // As vLLM's with the same blocks: in tick 3 request 1 needs a third block, request 2 is paused.
  const auto paused = make_scheduler(Policy::max_utilization, {}, {4, 16, true});
  paused->add(spec(31, 10));
  paused->add(spec(31, 10));
  EXPECT_THAT(run(*paused),
              ElementsAre("1:31 2:31", "1:1 2:1", "1:1", "1:1", "1:1", "1:1", "1:1", "1:1", "1:1",
                          "1:1", "2:17", "2:1", "2:1", "2:1", "2:1", "2:1", "2:1", "2:1"));
  EXPECT_EQ(paused->totals().preemptions, 1);
  // GUARANTEED_NO_EVICT would run one after the other: 40 tokens of each are 6 blocks.
  const auto sure = make_scheduler(Policy::trtllm, {}, {4, 16, true});
  sure->add(spec(31, 10));
  sure->add(spec(31, 10));
  EXPECT_EQ(run(*sure).size(), 20U);
  EXPECT_EQ(sure->totals().preemptions, 0);
  // Budget 16, a prompt of 40 takes ticks 1 to 3; request 2 joins in tick 3 with what is left.
  const auto chunks =
      make_scheduler(Policy::max_utilization, {.max_num_batched_tokens = 16}, {100, 16, false});
  chunks->add(spec(40, 3));
  chunks->add(spec(20, 2));
  EXPECT_THAT(run(*chunks), ElementsAre("1:16", "1:16", "1:8 2:8", "1:1 2:12", "1:1 2:1"));
}

TEST(Mlfq, FallsAQueueWhenTheQuantumIsUsed) {
  // One seat, quanta 1, 2, 4 ticks; 16 tokens of a prompt take one. Request 1 falls to queue 1
  // after its prompt; request 2 joins queue 0 before tick 3, takes it, falls behind request 1,
  // which uses up queue 1 in tick 4; then request 2 ends, and request 1.
  const auto scheduler =
      make_scheduler(Policy::mlfq, {.max_num_seqs = 1, .quantum_tokens = 16}, {100, 16, false});
  EXPECT_THAT(run(*scheduler, {{1, spec(16, 6)}, {3, spec(16, 2)}}),
              ElementsAre("1:16", "1:1", "2:16", "1:1", "2:1", "1:1", "1:1", "1:1"));
}

TEST(Mlfq, ALongPromptSkipsTheQueuesItWouldFallFrom) {
  // 64 tokens are 4 ticks: queue 2, whose quantum is 4. Request 2 (queue 0), then in queue 1, goes
  // before it; both are in queue 2 only when request 2 has computed 1 + 2 ticks.
  const auto scheduler =
      make_scheduler(Policy::mlfq, {.max_num_seqs = 1, .quantum_tokens = 16}, {100, 16, false});
  EXPECT_THAT(run(*scheduler, {{1, spec(64, 2)}, {1, spec(16, 4)}}),
              ElementsAre("2:16", "2:1", "2:1", "1:64", "2:1", "1:1"));
}

TEST(Mlfq, TheLowestGivesItsBlocksBack) {
  // 3 blocks of 16: request 1 has 2 (31 tokens) when request 2 comes, whose 31 need 2: request 1,
  // in queue 1 by then, is put back and computed again when request 2 has fallen behind it. The
  // second is put back by the first in its turn.
  const auto scheduler =
      make_scheduler(Policy::mlfq, {.max_num_seqs = 1, .quantum_tokens = 31}, {3, 16, false});
  EXPECT_THAT(run(*scheduler, {{1, spec(31, 2)}, {2, spec(31, 1)}}),
              ElementsAre("1:31", "2:31", "1:32"));
  EXPECT_EQ(scheduler->totals().preemptions, 1);
  EXPECT_EQ(scheduler->totals().lost_tokens, 31);
}

/// Everything.
struct All : LowerTiers {
  bool holds(std::uint64_t /*key*/) const override { return true; }
};

TEST(LowerTiers, ARequestWaitsForWhatTheyHaveAndOthersPassIt) {
  const All all;
  const auto scheduler = make_scheduler(Policy::vllm_v1, {}, {100, 16, true});
  scheduler->fetch_from(all);
  RequestSpec shared = spec(41, 1);
  shared.prefix = {.ids = {7}, .id_tokens = 40, .tokens = 40};
  scheduler->add(shared);
  scheduler->add(spec(10, 1));
  std::vector<RequestIndex> finished;
  const Tick& tick = scheduler->schedule();
  EXPECT_EQ(text(tick), "2:10");
  ASSERT_EQ(tick.fetches.size(), 1U);
  EXPECT_EQ(tick.fetches[0].keys.size(), 2U);  // full blocks of 40 tokens
  EXPECT_EQ(scheduler->book().used(), 4);      // 3 of its whole prompt, 1 of the other
  scheduler->complete(tick, finished);
  EXPECT_TRUE(scheduler->schedule().empty());
  scheduler->fetched(0);
  const Tick& last = scheduler->schedule();
  EXPECT_EQ(text(last), "1:9");
  scheduler->complete(last, finished);
  EXPECT_EQ(scheduler->totals().cached_tokens, 32);
  EXPECT_EQ(scheduler->totals().fetched_tokens, 32);
  EXPECT_EQ(scheduler->book().used(), 0);
}

TEST(Adapters, OnlySoManyRunAtOnceAndOthersPass) {
  // Two fit. Request 3 has a third one and waits for the end of a request; 4 passes it. Then 7
  // takes the place of adapter 6, the least recently used that nobody needs.
  const auto scheduler = make_scheduler(Policy::vllm_v1, {.adapters = 2}, {100, 16, false});
  const auto with = [](std::int32_t adapter, std::int64_t output) {
    RequestSpec request = spec(10, output);
    request.adapter = adapter;
    return request;
  };
  scheduler->add(with(5, 3));
  scheduler->add(with(6, 2));
  scheduler->add(with(7, 1));
  scheduler->add(with(5, 1));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:10 2:10 4:10", "1:1 2:1", "1:1 3:10"));
  EXPECT_EQ(scheduler->totals().copied_adapters, 3);
}

TEST(StaticBatch, WaitsForTheLongestAnswer) {
  const auto scheduler = make_scheduler(
      Policy::static_batch, {.max_num_batched_tokens = 100, .max_num_seqs = 2}, {100, 16, false});
  scheduler->add(spec(10, 1));
  scheduler->add(spec(10, 3));
  scheduler->add(spec(10, 1));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:10 2:10", "2:1", "2:1", "3:10"));
}

TEST(Sglang, PromptsBeforeDecodes) {
  const auto scheduler = make_scheduler(
      Policy::sglang, {.max_num_batched_tokens = 32, .max_num_seqs = 256}, {100, 1, true});
  scheduler->add(spec(20, 2));
  scheduler->add(spec(5, 2));
  EXPECT_THAT(run(*scheduler), ElementsAre("1:20 2:5", "1:1 2:1"));
}

struct Case {
  Limits limits;
  std::int64_t blocks = 0;
  std::int64_t block_size = 16;
  bool cache = true;
  std::vector<RequestSpec> requests;
};

std::string requests_text(const Case& of) {
  std::string text;
  for (const RequestSpec& request : of.requests) {
    text += fmt::format(
        "{} + {} and {}{} ", request.prompt, request.output, request.fixed_blocks,
        request.prefix.tokens > 0 ? fmt::format(" shares {}", request.prefix.ids[0]) : "");
  }
  return text;
}

Case any_case() {
  Case made;
  made.limits.max_num_batched_tokens = *rc::gen::inRange<std::int64_t>(8, 200);
  made.limits.max_num_seqs = *rc::gen::inRange<std::int64_t>(1, 8);
  made.limits.lookahead = *rc::gen::arbitrary<bool>();
  made.limits.reserve_full_isl = *rc::gen::arbitrary<bool>();
  made.block_size = *rc::gen::element<std::int64_t>(1, 4, 16);
  made.cache = *rc::gen::arbitrary<bool>();
  made.blocks =
      *rc::gen::inRange<std::int64_t>(120 / made.block_size + 1, 300 / made.block_size + 2);
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    RequestSpec request =
        spec(*rc::gen::inRange<std::int64_t>(1, 70), *rc::gen::inRange<std::int64_t>(1, 50));
    if (*rc::gen::arbitrary<bool>()) {
      request.prefix = {
          .ids = {*rc::gen::inRange<std::uint64_t>(1, 3)}, .id_tokens = 64, .tokens = 0};
      request.prefix.tokens = std::min<std::int64_t>(64, request.prompt);
    }
    request.fixed_blocks = *rc::gen::element<std::int64_t>(0, 0, 1, 5);
    made.requests.push_back(request);
  }
  return made;
}

struct Outcome {
  std::vector<std::string> ends;
  Totals totals;
  std::int64_t emitted = 0;
  std::int64_t work = 0;  ///< prompt + output - 1 of all
  std::int64_t cached = 0;
  std::int64_t lost = 0;
};

/// Requests join one by one every third tick. With `skips`, runs of ticks are jumped.
Outcome outcome(Policy policy, const Case& given, bool skips) {
  const auto scheduler =
      make_scheduler(policy, given.limits, {given.blocks, given.block_size, given.cache});
  Outcome result;
  std::vector<RequestIndex> finished;
  std::size_t next = 0;
  std::int64_t tick_number = 0;
  const Tick* in_flight = nullptr;
  const auto finish = [&](const Tick& tick) {
    finished.clear();
    scheduler->complete(tick, finished);
    for (const RequestIndex index : finished) {
      result.ends.push_back(fmt::format("{}@{}", index, tick_number));
    }
  };
  while (tick_number < 20000) {
    while (next < given.requests.size() && static_cast<std::int64_t>(next) * 3 <= tick_number) {
      if (scheduler->can_ever_run(given.requests[next])) {
        result.work += given.requests[next].prompt + given.requests[next].output - 1;
        scheduler->add(given.requests[next]);
      }
      ++next;
    }
    if (skips) {
      std::int64_t ticks = scheduler->steady_ticks();
      if (next < given.requests.size()) {
        ticks = std::min(ticks, static_cast<std::int64_t>(next) * 3 - tick_number - 1);
      }
      if (ticks > 0) {
        scheduler->skip(ticks);
        tick_number += ticks;
      }
    }
    const Tick& tick = scheduler->schedule();
    EXPECT_TRUE(scheduler->book().consistent());
    ++tick_number;
    if (given.limits.lookahead) {
      if (in_flight != nullptr) {
        finish(*in_flight);
      }
      in_flight = tick.empty() ? nullptr : &tick;
      if (tick.empty() && next == given.requests.size() && scheduler->running().empty() &&
          scheduler->waiting().empty()) {
        break;
      }
    } else {
      if (tick.empty() && next == given.requests.size()) {
        break;
      }
      finish(tick);
    }
  }
  EXPECT_LT(tick_number, 20000);
  EXPECT_TRUE(scheduler->waiting().empty());
  EXPECT_EQ(scheduler->book().used(), 0);
  result.totals = scheduler->totals();
  return result;
}

RC_GTEST_PROP(Policies, SkippingIsSteppingAndTokensAreConserved, ()) {
  const Case given = any_case();
  for (const Policy policy :
       {Policy::vllm_v1, Policy::vllm_v0, Policy::sarathi, Policy::orca, Policy::static_batch,
        Policy::sglang, Policy::trtllm, Policy::max_utilization}) {
    RC_LOG(fmt::format(
        "{}, {} tokens, {} requests, {} blocks of {}, cache {}, lookahead {}, reserve {}; {}",
        name_of(policy), given.limits.max_num_batched_tokens, given.limits.max_num_seqs,
        given.blocks, given.block_size, given.cache, given.limits.lookahead,
        given.limits.reserve_full_isl, requests_text(given)));
    const Outcome stepped = outcome(policy, given, false);
    const Outcome skipped = outcome(policy, given, true);
    RC_ASSERT(stepped.ends == skipped.ends);
    RC_ASSERT(stepped.totals.scheduled_tokens == skipped.totals.scheduled_tokens);
    RC_ASSERT(stepped.totals.preemptions == skipped.totals.preemptions);
    // Every token once, but those lost again, and those found not at all.
    RC_ASSERT(stepped.totals.scheduled_tokens ==
              stepped.work + stepped.totals.lost_tokens - stepped.totals.cached_tokens);
  }
}

}  // namespace
}  // namespace orrery::scheduler
