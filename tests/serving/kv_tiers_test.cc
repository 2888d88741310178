// SPDX-License-Identifier: Apache-2.0
#include "serving/kv_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::serving {
namespace {

const machine::Machine& dgx_with_tiers() {
  static const machine::Machine machine = machine::load_machine("dgx-h100").value();
  return machine;
}
const zoo::Model& tiered_model() {
  static const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  return model;
}

std::vector<std::uint64_t> keys(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// 10 GB/s and 1 ms; blocks of 1 MB take 0.1 ms each.
KvTier tier(std::int64_t blocks) {
  return {.name = "host",
          .capacity = Bytes(1'000'000) * blocks,
          .bandwidth = Bandwidth(10e9),
          .latency = 1_ms};
}
constexpr Bytes kBlock = Bytes(1'000'000);

TEST(KvTiers, CopiesFollowOneAnother) {
  KvTiers tiers({tier(100)}, kBlock);
  // 10 blocks: 1 + 1 ms. Only then they are found.
  EXPECT_TRUE(tiers.write(Time(0), 3, keys(1, 10)));
  EXPECT_FALSE(tiers.holds(1));
  EXPECT_EQ(tiers.next(), 2_ms);
  EXPECT_FALSE(tiers.write(1_ms, 4, keys(1, 10)));  // they are on the way
  const auto written = tiers.advance(2_ms);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].request, 3);
  EXPECT_FALSE(written[0].fetched);
  EXPECT_TRUE(tiers.holds(10));
  // Another write is in flight for 1.5 ms when 4 blocks are asked for: 3.5 + 1 + 0.4 ms.
  EXPECT_TRUE(tiers.write(2_ms, 5, keys(20, 5)));
  tiers.fetch(3_ms, {.request = 6, .keys = keys(1, 4)});
  EXPECT_EQ(tiers.advance(4_ms).size(), 1U);
  EXPECT_EQ(tiers.next(), 4900_us);
  const auto fetched = tiers.advance(5_ms);
  ASSERT_EQ(fetched.size(), 1U);
  EXPECT_TRUE(fetched[0].fetched);
  EXPECT_EQ(fetched[0].asked, 3_ms);
}

TEST(KvTiers, AStoreWithABandwidthOfItsOwnServesOneEngineAfterTheOther) {
  KvTier remote = tier(100);
  remote.name = "remote";
  remote.store = Bandwidth(20e9);
  const auto store = std::make_shared<KvStore>(remote.capacity, remote.store);
  // Four ranks of 10 blocks of 1 MB: 1 ms on each rank's way, 40 MB from 20 GB/s take 2 ms.
  std::vector<KvTiers> engines;
  for (int i = 0; i < 3; ++i) {
    engines.emplace_back(std::vector{remote}, kBlock, 4);
    engines.back().share(store, kBlock);
  }
  const std::array<Time, 3> ends{3_ms, 5_ms, 8_ms};
  const std::array<Time, 3> asked{Time(0), Time(0), 5_ms};  // the last when nobody is there
  for (std::size_t i = 0; i < engines.size(); ++i) {
    engines[i].write(asked[i], 0, keys(100 * i, 10));
    EXPECT_EQ(engines[i].advance(ends[i] - 1_ps).size(), 0U) << i;
    EXPECT_EQ(engines[i].advance(ends[i]).size(), 1U) << i;
  }
}

TEST(KvTiers, AFullTierDropsTheLeastRecentlyUsedAndTheNextOneHasIt) {
  KvTiers tiers({tier(4), tier(100)}, kBlock);
  tiers.write(Time(0), 0, keys(1, 4));
  tiers.advance(1_s);
  tiers.write(1_s, 1, keys(5, 2));
  tiers.advance(2_s);
  EXPECT_EQ(tiers.written_blocks(), 12);  // 6 to each
  // Blocks 4 and 3 were the oldest of the first tier; the second has all.
  for (const std::uint64_t key : keys(1, 6)) {
    EXPECT_TRUE(tiers.holds(key));
  }
  // Block 1 is in the first, 3 in the second: each takes 1.1 ms, beside one another.
  tiers.fetch(2_s, {.request = 2, .keys = {1, 3}});
  EXPECT_EQ(tiers.next(), 2_s + 1100_us);
  tiers.fetch(2_s, {.request = 3, .keys = {3, 4}});  // both in the second: after it, 1.2 ms
  tiers.advance(2_s + 1100_us);
  EXPECT_EQ(tiers.next(), 2_s + 2300_us);
}

TEST(KvTiers, AStoreOfSeveralHasWhatEachHasWritten) {
  KvTier remote = tier(100);
  remote.name = "remote";
  const auto store = std::make_shared<KvStore>(remote.capacity);
  KvTiers writer({remote}, kBlock);
  KvTiers reader({tier(100), remote}, kBlock);
  writer.share(store, kBlock);
  reader.share(store, kBlock);
  EXPECT_TRUE(writer.write(Time(0), 1, keys(1, 10)));  // there at 2 ms
  EXPECT_EQ(reader.next(), 2_ms);
  EXPECT_TRUE(reader.advance(1_ms).empty());
  EXPECT_FALSE(reader.holds(1));
  EXPECT_TRUE(reader.advance(2_ms).empty());  // though the writer has not looked
  EXPECT_TRUE(reader.holds(10));
  EXPECT_FALSE(writer.write(2_ms, 2, keys(1, 10)));
  // The writer's way is busy until 4.1 ms with 11 blocks more, the reader's is its own.
  EXPECT_TRUE(writer.write(2_ms, 3, keys(20, 11)));
  reader.fetch(2_ms, {.request = 6, .keys = keys(1, 10)});
  EXPECT_EQ(reader.next(), 4_ms);
  EXPECT_EQ(reader.advance(4_ms).size(), 1U);
  EXPECT_FALSE(reader.holds(20));
  EXPECT_EQ(writer.advance(5_ms).size(), 2U);
  EXPECT_EQ(writer.written_blocks(), 21);
}

TEST(KvTiers, AreTiersOfTheMachine) {
  const auto tiers = kv_tiers_of("host:10 GB,nvme,remote:1 TB", dgx_with_tiers()).value();
  ASSERT_EQ(tiers.size(), 3U);
  EXPECT_EQ(tiers[0].capacity, Bytes(10'000'000'000));
  EXPECT_EQ(tiers[0].bandwidth, dgx_with_tiers().device.memory[1].bandwidth);
  EXPECT_EQ(tiers[1].capacity, dgx_with_tiers().device.memory[2].capacity);
  EXPECT_EQ(tiers[2].bandwidth, dgx_with_tiers().network.back().bandwidth);
  EXPECT_EQ(kv_tiers_of("remote:1 TB@20 GB/s", dgx_with_tiers()).value().front().store, 20_GBps);
  for (const char* wrong : {"hst", "host:", "host:0 GB", "remote", "hbm", ",", "remote:1 TB@0 GB/s",
                            "remote:1 TB@", "host:1 GB@2 GB/s"}) {
    EXPECT_FALSE(kv_tiers_of(wrong, dgx_with_tiers()).has_value()) << wrong;
  }
  EXPECT_THAT(kv_tiers_of("hst", dgx_with_tiers()).error().to_string(),
              ::testing::HasSubstr("host, nvme"));
}

/// 12 sessions of 4 turns; a user thinks for 2 s.
std::vector<requests::Request> sessions() {
  requests::Generator load;
  load.rate = 4;
  load.input = {.kind = requests::Length::Kind::uniform, .first = 100, .second = 400};
  load.output.first = 50;
  load.count = 48;
  load.turns = 4;
  load.think = 2_s;
  return requests::generate(load);
}
Run served(std::int64_t blocks, const char* tiers, const machine::Machine& machine) {
  Engine engine = load_engine("vllm@0.10").value();
  engine.blocks = blocks;
  engine.tiers = tiers;
  return Server::make(tiered_model(), machine, engine)->run(sessions());
}

TEST(KvTiers, FastAndLargeOnesAreALargerMemory) {
  // 300 blocks hold a few sessions, 20,000 all of them.
  machine::Machine fast = dgx_with_tiers();
  fast.device.memory[1].bandwidth = Bandwidth(1e18);
  fast.device.memory[1].latency = Time(0);
  const serving::Run small = served(300, "", fast);
  const serving::Run large = served(20'000, "", fast);
  const serving::Run tiered = served(300, "host", fast);
  EXPECT_LT(small.totals.cached_tokens, large.totals.cached_tokens * 9 / 10);
  EXPECT_EQ(tiered.totals.cached_tokens, large.totals.cached_tokens);
  EXPECT_GT(tiered.totals.fetched_tokens, 0);
  EXPECT_GT(tiered.written_blocks, 0);
  EXPECT_EQ(tiered.requests.size(), 48U);
}

TEST(KvTiers, NothingIsFetchedForNothing) {
  const serving::Run host = served(300, "host", dgx_with_tiers());
  Time least{0};
  std::int64_t fetched = 0;
  for (const Served& request : host.requests) {
    EXPECT_LE(request.sent, request.queued);
    EXPECT_LE(request.queued + request.fetching, request.scheduled);
    fetched += request.fetching > Time(0) ? 1 : 0;
    least += request.fetching;
  }
  EXPECT_GT(fetched, 0);
  // 2 x 16 layers x 8 heads x 64 x 2 bytes = 32 KiB a token, at 51.2 GB/s and 10 us a request.
  EXPECT_EQ(host.cache.per_token, 32_KiB);
  const Bytes bytes = host.cache.per_token * host.totals.fetched_tokens;
  EXPECT_GE(least, bytes / Bandwidth(51.2e9) + fetched * 10_us);
  // From a disk of 4 GB/s it takes longer.
  const serving::Run disk = served(300, "nvme", dgx_with_tiers());
  const auto waiting = [](const serving::Run& run) {
    Time sum{0};
    for (const Served& request : run.requests) {
      sum += request.fetching;
    }
    return sum / std::max<std::int64_t>(1, run.totals.fetched_tokens);
  };
  EXPECT_GT(waiting(disk), 5 * waiting(host));
}

/// Five engines in turn: a session's turns go to different ones.
Run served_in_turn(std::int64_t blocks, const char* tiers, const machine::Machine& machine,
                   const ServeOptions& options = {}) {
  Engine engine = load_engine("vllm@0.10").value();
  engine.blocks = blocks;
  engine.tiers = tiers;
  engine.replicas = 5;
  return Server::make(tiered_model(), machine, engine)->run(sessions(), options);
}

TEST(KvTiers, AStoreMakesEnginesInTurnAsGoodAsOne) {
  machine::Machine fast = dgx_with_tiers();
  fast.network.back().bandwidth = Bandwidth(1e18);
  fast.network.back().latency = fast.network.back().message_overhead = Time(0);
  const serving::Run one = served(20'000, "", fast);
  const serving::Run apart = served_in_turn(20'000, "host", fast);
  const serving::Run shared = served_in_turn(20'000, "remote:1 TB", fast);
  EXPECT_LT(apart.totals.cached_tokens, one.totals.cached_tokens * 3 / 4);
  EXPECT_EQ(shared.totals.cached_tokens, one.totals.cached_tokens);
  EXPECT_GT(shared.totals.fetched_tokens, 0);
}

RC_GTEST_PROP(KvTiers, SkippingBesideASharedStoreIsStepping, ()) {
  const auto blocks = *rc::gen::inRange(150, 1000);
  const auto* const tiers =
      *rc::gen::element("remote:1 GB", "host:50 MB,remote:100 GB", "remote:100 GB@2 GB/s");
  const Run skipped = served_in_turn(blocks, tiers, dgx_with_tiers());
  const Run stepped = served_in_turn(blocks, tiers, dgx_with_tiers(), {.skip = false});
  RC_ASSERT(skipped.totals.fetched_tokens == stepped.totals.fetched_tokens);
  RC_ASSERT(skipped.written_blocks == stepped.written_blocks);
  RC_ASSERT(skipped.requests.size() == stepped.requests.size());
  for (std::size_t i = 0; i < stepped.requests.size(); ++i) {
    RC_ASSERT(skipped.requests[i].first == stepped.requests[i].first);
    RC_ASSERT(skipped.requests[i].last == stepped.requests[i].last);
    RC_ASSERT(skipped.requests[i].fetching == stepped.requests[i].fetching);
  }
}

}  // namespace
}  // namespace orrery::serving
