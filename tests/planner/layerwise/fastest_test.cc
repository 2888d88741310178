// SPDX-License-Identifier: Apache-2.0
#include "planner/layerwise/fastest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace orrery::layerwise {
namespace {

constexpr Bytes kMegabyte{1'000'000};

/// Whole megabytes, so that a table over them is exact.
Chain random_chain(unsigned seed, std::size_t layers, std::size_t strategies) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  Chain chain;
  chain.strategies.resize(strategies);
  const std::size_t kinds = 1 + static_cast<std::size_t>(below(3));
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    LayerCosts costs;
    for (std::size_t s = 0; s < strategies; ++s) {
      const std::int64_t memory = 1 + below(60);
      costs.memory.push_back(kMegabyte * memory);
      costs.time.push_back(1_us * (20 + below(400) + 2000 / memory));
    }
    costs.change.assign(kind == 0 ? 0 : strategies, std::vector<Time>(strategies, Time(0)));
    for (auto& row : costs.change) {
      for (Time& change : row) {
        change = 1_us * below(100);
      }
    }
    chain.kinds.push_back(std::move(costs));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    chain.layers.push_back(i % kinds);
  }
  return chain;
}

/// Galvatron's recurrence as published, over whole megabytes.
Time by_table(const Chain& chain, std::size_t megabytes) {
  const std::size_t count = chain.strategies.size();
  using Row = std::vector<Time>;
  const Time never = Time::max() / 4;
  std::vector<Row> table(count, Row(megabytes + 1, never));
  for (std::size_t layer = 0; layer < chain.layers.size(); ++layer) {
    std::vector<Row> next(count, Row(megabytes + 1, never));
    const LayerCosts& costs = chain.layer(layer);
    for (std::size_t to = 0; to < count; ++to) {
      const auto own = static_cast<std::size_t>(costs.memory[to] / kMegabyte);
      for (std::size_t memory = own; memory <= megabytes; ++memory) {
        Time least = layer == 0 ? Time(0) : never;
        for (std::size_t from = 0; from < count && layer > 0; ++from) {
          least = std::min(least, table[from][memory - own] + chain.change(layer, from, to));
        }
        next[to][memory] = std::min(never, least + costs.time[to]);
      }
    }
    table = std::move(next);
  }
  Time best = never;
  for (const Row& row : table) {
    best = std::min(best, row.back());
  }
  return best;
}

TEST(FastestWithin, IsWhatATableOverMegabytesFinds) {
  int limited = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Chain chain = random_chain(seed, 1 + seed % 12, 1 + seed % 7);
    const std::size_t megabytes = 5 + (seed * 37) % 300;
    const Time expected = by_table(chain, megabytes);
    const auto found = fastest_within(chain, kMegabyte * static_cast<std::int64_t>(megabytes));
    if (expected >= Time::max() / 4) {
      EXPECT_FALSE(found) << seed;
      continue;
    }
    ASSERT_TRUE(found) << seed << found.error().to_string();
    EXPECT_EQ(found->time, expected) << seed;
    EXPECT_EQ(found->bound, found->time) << seed;
    limited += found->labels > 0 ? 1 : 0;
  }
  EXPECT_GT(limited, 30);
}

TEST(FastestWithin, TheAnswerTakesAndHoldsWhatItSays) {
  const Chain chain = random_chain(5, 96, 22);
  const Bytes limit = kMegabyte * 2500;
  const auto found = fastest_within(chain, limit);
  ASSERT_TRUE(found);
  Time time(0);
  Bytes memory(0);
  for (std::size_t layer = 0; layer < 96; ++layer) {
    const std::size_t strategy = found->strategies.at(layer);
    time += chain.layer(layer).time[strategy];
    memory += chain.layer(layer).memory[strategy];
    if (layer > 0) {
      time += chain.change(layer, found->strategies[layer - 1], strategy);
    }
  }
  EXPECT_EQ(time, found->time);
  EXPECT_EQ(memory, found->memory);
  EXPECT_LE(memory, limit);
  EXPECT_LE(found->bound, found->time);
}

/// Two layers, 1 s with 3 GB or 4 s with 1 GB: of 4 GB only one may be fast, 5 s.
TEST(FastestWithin, OneOfTwoLayersMayBeFast) {
  Chain chain;
  chain.strategies = {"fast", "frugal"};
  chain.kinds = {{"layer", {1_s, 4_s}, {kMegabyte * 3000, kMegabyte * 1000}, {}}};
  chain.layers = {0, 0};
  EXPECT_EQ(fastest_within(chain, kMegabyte * 4000)->time, 5_s);
  EXPECT_EQ(fastest_within(chain, kMegabyte * 6000)->time, 2_s);
  EXPECT_EQ(fastest_within(chain, kMegabyte * 2000)->time, 8_s);
  EXPECT_NE(fastest_within(chain, kMegabyte * 1999).error().to_string().find("the most frugal"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::layerwise
