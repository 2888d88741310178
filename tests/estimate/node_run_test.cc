// SPDX-License-Identifier: Apache-2.0
// Equal layers of a template at once: to the picosecond what the run of all their nodes gives.
#include "estimate/node_run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimate/issue_lists.h"
#include "estimate/pass_map.h"
#include "estimate/repeats.h"
#include "estimate/replay.h"
#include "estimate/template_tables.h"
#include "random_plans.h"
#include "workload/parallel/outline.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

constexpr std::uint8_t kTensorLane = 1;

/// Layers of two kernels and a collective between them, and a kernel behind the last.
TimedTemplate layers(int count, Time first, Time collective, Time second) {
  TimedTemplate nodes;
  std::vector<std::uint32_t> starts;
  const auto add = [&](TimedNode node, std::vector<std::uint32_t> after) {
    node.first_before = static_cast<std::uint32_t>(nodes.before.size());
    node.befores = static_cast<std::uint32_t>(after.size());
    node.least = node.work;
    nodes.before.insert(nodes.before.end(), after.begin(), after.end());
    nodes.nodes.push_back(node);
    return static_cast<std::uint32_t>(nodes.nodes.size() - 1);
  };
  for (int layer = 0; layer < count; ++layer) {
    starts.push_back(static_cast<std::uint32_t>(nodes.nodes.size()));
    const std::uint32_t kernel =
        add({.work = first, .host_cost = 1_us, .host_span = first + 1_us}, {});
    const std::uint32_t sum = add({.kind = TimedNode::Kind::collective,
                                   .lane = kTensorLane,
                                   .slows_kernels = true,
                                   .work = collective},
                                  {kernel});
    add({.work = second, .host_cost = 1_us, .host_span = second + 1_us}, {sum});
  }
  add({.work = 1_us}, {});
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t i = 0; i + 1 < nodes.nodes.size(); ++i) {
    kinds.push_back(i % 3);
  }
  kinds.push_back(3);
  nodes.repeats = find_repeats(nodes, starts, kinds);
  return nodes;
}

TEST(NodeRun, LayersAreFoundAndTakeAsLongAsOneTimesTheirNumber) {
  // Layers of 3 + 2 + 4 us, and 1 us: 9 x 50 + 1 = 451 us; the host needs 2 us a layer.
  const TimedTemplate nodes = layers(50, 3_us, 2_us, 4_us);
  ASSERT_EQ(nodes.repeats.size(), 1U);
  EXPECT_EQ(nodes.repeats.front().length, 3U);
  EXPECT_EQ(nodes.repeats.front().times, 50U);
  const PassMap map = map_of(nodes, {}, Works::slowed);
  EXPECT_EQ(map.entry(kCompute, kCompute), 451_us);
}

TEST(NodeRun, AHostThatIsSlowerThanTheDeviceDecidesHowLongLayersTake) {
  // The host issues a kernel every us: two a layer of 0.2 us of kernels. The second of a layer ends
  // 1.1 us after the host was free for it (2n - 1 us): 2 x 50 - 1 + 1.1 us, then 1 us.
  const TimedTemplate nodes = layers(50, 100_ns, 0_us, 100_ns);
  const PassMap map = map_of(nodes, {}, Works::slowed);
  std::size_t host = 0;
  while (map.clocks[host] != kHost) {
    ++host;
  }
  EXPECT_EQ(map.entry(kCompute, host), 101_us + 100_ns);
}

TEST(NodeRun, FewerThanFourLayersAreRunOneByOne) {
  EXPECT_TRUE(layers(3, 3_us, 2_us, 4_us).repeats.empty());
}

struct Prepared {
  parallel::Outline outline;
  TimedWorkload timed;
  IssueLists lists;
};

/// Of a random plan whose stages may have many layers.
class Plans {
 public:
  Plans(std::uint64_t seed, const std::vector<std::string>& machines)
      : plans_({.seed = seed, .machines = machines}) {}

  /// visit(prepared, what it is told by) of each.
  template <class Visit>
  void each(int count, Visit&& visit) {
    for (int i = 0; i < count; ++i) {
      const auto drawn = plans_.next();
      const plan::Plan& plan = drawn.plan.plan;
      const auto told = drawn.plan.name + "\n" + plan::to_yaml(plan);
      auto outline = parallel::outline(drawn.plan.model, plan);
      ASSERT_TRUE(outline) << told;
      Placement placement(plan::layout_of(plan, drawn.plan.model.experts > 0), drawn.machine);
      const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
      Prices prices;
      TemplateTables tables;
      const Timing timing{.placement = placement, .algorithms = algorithms, .prices = prices};
      TimedWorkload timed = time_outline(*outline, timing, tables);
      IssueLists lists = issue_lists(*outline->lists.source, outline->lists.program_of.size());
      visit(Prepared{std::move(*outline), std::move(timed), std::move(lists)}, told);
    }
  }

 private:
  testing::RandomPlans plans_;
};

TEST(NodeRun, MapsOfRandomPlansAreThoseOfAllNodes) {
  std::vector<std::string> machines = testing::kSwitchedMachines;
  machines.insert(machines.end(), testing::kTorusMachines.begin(), testing::kTorusMachines.end());
  std::size_t repeats = 0;
  Plans(31, machines).each(120, [&](const Prepared& prepared, const std::string& told) {
    for (const auto& one : prepared.timed.templates) {
      TimedTemplate plain = one->nodes;
      repeats += plain.repeats.size();
      plain.repeats.clear();
      for (const Works works : {Works::slowed, Works::least}) {
        const PassMap map = map_of(one->nodes, *prepared.timed.transfers, works);
        const PassMap expected = map_of(plain, *prepared.timed.transfers, works);
        ASSERT_EQ(map.entries, expected.entries) << told;
        ASSERT_EQ(map.spans.size(), expected.spans.size()) << told;
        for (std::size_t i = 0; i < map.spans.size(); ++i) {
          ASSERT_EQ(map.spans[i].begin, expected.spans[i].begin) << told;
          ASSERT_EQ(map.spans[i].end, expected.spans[i].end) << told;
        }
      }
    }
  });
  EXPECT_GT(repeats, 200U);
}

TEST(NodeRun, StepsOfRandomPlansAreThoseOfAllNodes) {
  std::vector<std::string> machines = testing::kSwitchedMachines;
  machines.insert(machines.end(), testing::kTorusMachines.begin(), testing::kTorusMachines.end());
  int jumped = 0;
  Plans(32, machines).each(150, [&](Prepared prepared, const std::string& told) {
    map_templates(prepared.timed, Works::slowed);
    const auto run = replay({prepared.timed, prepared.lists});
    const auto all = replay({prepared.timed, prepared.lists, false});
    ASSERT_TRUE(run && all) << told;
    ASSERT_EQ(run->step_time, all->step_time) << told;
    for (std::size_t s = 0; s < run->stages.size(); ++s) {
      ASSERT_EQ(run->stages[s].busy, all->stages[s].busy) << told;
      ASSERT_EQ(run->stages[s].end, all->stages[s].end) << told;
    }
    jumped += run->jumped > 0 ? 1 : 0;
    EXPECT_EQ(all->jumped, 0) << told;
  });
  EXPECT_GT(jumped, 20);
}

}  // namespace
}  // namespace orrery::estimate
