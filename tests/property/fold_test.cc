// SPDX-License-Identifier: Apache-2.0
// Folding is exact: on random machines and workloads the timeline of a simulated rank equals, to
// the picosecond, that of every rank it stands for when all ranks are simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "../simulate/builder.h"
#include "machine/topology/read.h"
#include "simulate/message_fold.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

struct FoldCase {
  machine::Machine machine;
  graph::Workload workload;
  simulate::SimulateOptions options;
};

std::int64_t pick_one(std::initializer_list<std::int64_t> values) {
  return *rc::gen::elementOf(std::vector<std::int64_t>(values));
}

topology::DimensionKind any_kind() {
  return *rc::gen::weightedElement<topology::DimensionKind>(
      {{4, topology::DimensionKind::switched},
       {1, topology::DimensionKind::fully_connected},
       {2, topology::DimensionKind::ring},
       {1, topology::DimensionKind::mesh}});
}

/// One or two dimensions that hold `devices`; sometimes on one nic, sometimes cut so that an axis
/// straddles them or covers part of a ring.
machine::Machine any_folded_machine(std::int64_t devices) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= devices; ++d) {
    if (devices % d == 0) {
      divisors.push_back(d);
    }
  }
  const std::int64_t inner = *rc::gen::elementOf(divisors);
  machine::Machine machine =
      machine_of({dimension(any_kind(), inner), dimension(any_kind(), devices / inner)});
  machine.network[1].bandwidth = Bandwidth(0.3e9);
  if (*rc::gen::inRange(0, 3) == 0) {
    machine.network[0].nic = machine.network[1].nic = "nic";
  }
  machine.device.overlap_memory = *rc::gen::elementOf(std::vector<double>{0, 0.25});
  return machine;
}

Bytes any_bytes() {
  return Bytes(*rc::gen::inRange<std::int64_t>(1, 3'000'000));
}
Time any_folded_time() {
  return 1_us * *rc::gen::inRange<std::int64_t>(1, 2000);
}

/// Compute, blocking and overlapped collectives and a message to the next stage, in random order.
std::vector<graph::Node> any_stage(const plan::RankLayout& layout, std::int64_t stage) {
  const std::int64_t stages = layout.size(plan::Axis::pp);
  std::vector<graph::Node> nodes;
  int last = -1;  // the node that the next one depends on
  const auto add = [&](graph::Node node, bool blocks) {
    if (last >= 0) {
      node.after.push_back(last);
    }
    nodes.push_back(std::move(node));
    last = blocks ? static_cast<int>(nodes.size()) - 1 : last;
  };
  if (stage > 0) {
    add(receive("in", plan::Channel::forward), true);
  }
  const int steps = *rc::gen::inRange(1, 5);
  for (int i = 0; i < steps; ++i) {
    add(compute_node("work", any_folded_time()), true);
    const bool blocks = *rc::gen::arbitrary<bool>();
    const plan::Axis axis = *rc::gen::elementOf(
        std::vector<plan::Axis>{plan::Axis::tp, plan::Axis::dp, plan::Axis::ep, plan::Axis::edp});
    graph::Node node = collective_node("reduce", axis, any_bytes(), {});
    node.collective = axis == plan::Axis::ep ? graph::CollectiveKind::all_to_all : node.collective;
    add(std::move(node), blocks);
  }
  if (stages > 1 && (stage == 0 || stage == stages - 1)) {
    add(collective_node("tied", plan::Axis::embedding, Bytes(500'000), {}), false);
  }
  if (stage + 1 < stages) {
    add(send("out", plan::Channel::forward, any_bytes(), {}), *rc::gen::arbitrary<bool>());
  }
  return nodes;
}

FoldCase any_case() {
  FoldCase c;
  plan::RankLayout layout{{{plan::Axis::tp, pick_one({1, 2, 3, 4})},
                           {plan::Axis::dp, pick_one({1, 2, 4})},
                           {plan::Axis::pp, pick_one({1, 2, 3})}}};
  if (*rc::gen::arbitrary<bool>()) {
    std::swap(layout.axes[1], layout.axes[2]);
  } else {  // experts over the ranks of tp x dp once more
    const std::int64_t ranks = layout.axes[0].size * layout.axes[1].size;
    const std::int64_t ep = pick_one({1, 2, 4});
    if (ranks % ep == 0) {
      layout.communicators = {{plan::Axis::ep, {{ep, 1}}}, {plan::Axis::edp, {{ranks / ep, ep}}}};
    }
  }
  std::vector<std::vector<graph::Node>> stages;
  for (std::int64_t stage = 0; stage < layout.size(plan::Axis::pp); ++stage) {
    stages.push_back(any_stage(layout, stage));
  }
  c.machine = any_folded_machine(layout.ranks());
  c.workload = workload_of(layout, std::move(stages), *rc::gen::inRange(1, 5));
  c.workload.host_dispatch = 1_us * pick_one({0, 0, 30});
  c.options.algorithms.fill(plan::kAxisCount,
                            *rc::gen::weightedElement<collective::CollectiveAlgorithm>(
                                {{4, collective::CollectiveAlgorithm::ring},
                                 {1, collective::CollectiveAlgorithm::automatic},
                                 {1, collective::CollectiveAlgorithm::hierarchical},
                                 {1, collective::CollectiveAlgorithm::direct},
                                 {1, collective::CollectiveAlgorithm::double_binary_tree}}));
  return c;
}

std::string describe_fold(const FoldCase& c) {
  std::string text;
  for (const graph::Group& group : c.workload.groups) {
    text += group.name + " " + std::to_string(group.members.size()) + " ";
  }
  for (const topology::NetworkDimension& d : c.machine.network) {
    text += "| " + std::string(name_of(d.kind)) + " " + std::to_string(d.size) + " " + d.nic;
  }
  text += " | " + std::string(name_of(c.options.algorithms[plan::Axis::tp]));
  for (const graph::Program& program : c.workload.programs) {
    text += "\nprogram:";
    for (const graph::Node& node : program.templates[0].nodes) {
      const bool alone = node.group.none();
      text += " " + node.name + (alone ? "" : "(" + c.workload.group(node.group).name + ")");
    }
  }
  return text;
}

TEST(Fold, TimelinesEqualThoseOfEveryRankSimulated) {
  int folded_cases = 0;
  int partly_folded_cases = 0;
  int refused_cases = 0;
  EXPECT_TRUE(rc::check("folded = unfolded", [&] {
    FoldCase c = any_case();
    simulate::Binding bound(c.workload, c.machine, c.options.algorithms);
    bound.bind_all();
    const simulate::Fold fold = fold_ranks(c.workload, c.machine, bound, std::nullopt);
    const auto folded = simulate::simulate(c.workload, c.machine, c.options);
    c.options.fold = false;
    const auto unfolded = simulate::simulate(c.workload, c.machine, c.options);
    RC_ASSERT(folded.has_value() && unfolded.has_value());
    RC_ASSERT(folded->ranks == fold.ranks);
    RC_LOG(describe_fold(c));
    const bool folds = folded->fold.simulated < folded->fold.ranks;
    folded_cases += folds ? 1 : 0;
    partly_folded_cases += folds && !folded->fold.reasons.empty() ? 1 : 0;
    refused_cases += folded->fold.reasons.empty() ? 0 : 1;
    RC_ASSERT(folded->step_time == unfolded->step_time);
    for (std::size_t i = 0; i < unfolded->ranks.size(); ++i) {
      const auto mirror =
          std::ranges::lower_bound(fold.ranks, fold.representative(unfolded->ranks[i]));
      const auto j = static_cast<std::size_t>(mirror - fold.ranks.begin());
      RC_ASSERT(unfolded->finish[i] == folded->finish[j]);
      RC_ASSERT(unfolded->by_rank[i] == folded->by_rank[j]);
    }
  }));
  EXPECT_GT(folded_cases, 10);
  EXPECT_GT(partly_folded_cases, 5);
  EXPECT_GT(refused_cases, 10);
}

/// A leaf-spine network or a torus of as many hosts, with a routing that has its symmetry or not.
void lay_on_links(machine::Machine& machine, std::int64_t devices) {
  const std::int64_t leaves = devices % 4 == 0 ? devices / 4 : 1;
  const std::string spec =
      *rc::gen::arbitrary<bool>()
          ? "torus:" + std::to_string(leaves) + "x" + std::to_string(devices / leaves)
          : "leaf_spine:leaves=" + std::to_string(leaves) +
                ",spines=2,hosts=" + std::to_string(devices / leaves);
  const auto routing = *rc::gen::elementOf(std::vector<topology::Routing>{
      topology::Routing::automatic, topology::Routing::spray, topology::Routing::shortest});
  machine.wires = {.spec = spec,
                   .routing = routing,
                   .graph = std::make_shared<const topology::LinkGraph>(
                       topology::load_topology(spec, "test").value())};
}

/// Rounding of rates to a picosecond may differ where flows are summed in another order.
bool alike(Time a, Time b) {
  return std::abs((a - b).value()) <= 1 + b.value() / 1'000'000'000;
}

TEST(Fold, FlowsOfMirroredRanksAreThoseOfEveryRankSimulated) {
  int folded_cases = 0;
  int laid_cases = 0;
  int refused_cases = 0;
  EXPECT_TRUE(rc::check("folded = unfolded, message by message", [&] {
    FoldCase c = any_case();
    c.options.network = simulate::NetworkModel::flow;
    if (*rc::gen::arbitrary<bool>()) {
      lay_on_links(c.machine, c.workload.ranks);
    }
    simulate::Binding bound(c.workload, c.machine, c.options.algorithms,
                            simulate::PhaseChoice::with_messages);
    bound.bind_all();
    const simulate::Fold fold = fold_messages(c.workload, c.machine, bound, std::nullopt);
    const auto folded = simulate::simulate(c.workload, c.machine, c.options);
    c.options.fold = false;
    const auto unfolded = simulate::simulate(c.workload, c.machine, c.options);
    RC_LOG(describe_fold(c) + " " + c.machine.wires.spec);
    RC_ASSERT(folded.has_value() == unfolded.has_value());
    if (!folded.has_value()) {
      return;
    }
    const bool folds = folded->fold.simulated < folded->fold.ranks;
    folded_cases += folds ? 1 : 0;
    laid_cases += folds && c.machine.wires.graph ? 1 : 0;
    refused_cases += folded->fold.reasons.empty() ? 0 : 1;
    RC_ASSERT(alike(folded->step_time, unfolded->step_time));
    for (std::size_t i = 0; i < unfolded->ranks.size(); ++i) {
      const auto mirror =
          std::ranges::lower_bound(folded->ranks, fold.representative(unfolded->ranks[i]));
      const auto j = static_cast<std::size_t>(mirror - folded->ranks.begin());
      RC_ASSERT(alike(unfolded->finish[i], folded->finish[j]));
    }
  }));
  EXPECT_GT(folded_cases, 10);
  EXPECT_GT(laid_cases, 5);
  EXPECT_GT(refused_cases, 10);
}

TEST(Shortcuts, TimelinesEqualThoseOfEveryNodeRun) {
  std::uint64_t events = 0;
  EXPECT_TRUE(rc::check("chains = single nodes", [&] {
    FoldCase c = any_case();
    const auto taken = simulate::simulate(c.workload, c.machine, c.options);
    c.options.shortcuts = false;
    const auto single = simulate::simulate(c.workload, c.machine, c.options);
    RC_ASSERT(taken.has_value() && single.has_value());
    RC_LOG(describe_fold(c));
    RC_ASSERT(taken->events == single->events);
    RC_ASSERT(taken->finish == single->finish);
    RC_ASSERT(taken->by_rank == single->by_rank);
    events += taken->events;
  }));
  EXPECT_GT(events, 0U);
}

TEST(Fold, DigitsThatStraddleSwitchesFoldWhereRanksShareNoLink) {
  // 2 x 3 x 2 ranks in blocks of 4: dp has stride 2, so its three values straddle the blocks.
  // Stages are 6 ranks apart: every message leaves its block, and all ranks of a stage send alike.
  const plan::RankLayout layout{{{plan::Axis::tp, 2}, {plan::Axis::dp, 3}, {plan::Axis::pp, 2}}};
  const graph::Workload workload = workload_of(
      layout, {{compute_node("work", 1_ms), collective_node("reduce", plan::Axis::dp, 1_MiB, {0}),
                send("out", plan::Channel::forward, 1_MiB, {0})},
               {receive("in", plan::Channel::forward), compute_node("work", 2_ms, {0}),
                collective_node("reduce", plan::Axis::dp, 2_MiB, {1})}});
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 4),
                                         dimension(topology::DimensionKind::switched, 3)});
  simulate::SimulateOptions options;
  const auto folded = simulate::simulate(workload, machine, options).value();
  EXPECT_EQ(folded.fold.simulated, 2);
  EXPECT_TRUE(folded.fold.reasons.empty());
  options.fold = false;
  const auto all = simulate::simulate(workload, machine, options).value();
  EXPECT_EQ(folded.step_time, all.step_time);
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    EXPECT_EQ(all.finish[rank], folded.finish[rank / 6]);
  }
  options.fold = true;
  machine.network[1].node_bandwidth =
      2_GBps;  // a link of 4 ranks, of two stages in the second block
  const auto shared = simulate::simulate(workload, machine, options).value();
  EXPECT_EQ(shared.fold.simulated, 12);
  EXPECT_THAT(shared.fold.reasons, ::testing::ElementsAre(::testing::HasSubstr("straddles")));
}

TEST(Fold, OfADigitOverTwoRingsThePartFoldsThatCoversOne) {
  // dp 8 is the whole first ring of 4 and half of the second; stages are its other halves. Ranks of
  // one first ring send alike, and stand for one another: 16 / 4 are simulated.
  const plan::RankLayout layout{{{plan::Axis::dp, 8}, {plan::Axis::pp, 2}}};
  const graph::Workload workload = workload_of(
      layout, {{compute_node("work", 1_ms), collective_node("reduce", plan::Axis::dp, 1_MiB, {0}),
                send("out", plan::Channel::forward, 1_MiB, {0})},
               {receive("in", plan::Channel::forward), compute_node("work", 2_ms, {0}),
                collective_node("reduce", plan::Axis::dp, 2_MiB, {1})}});
  const machine::Machine machine = machine_of(
      {dimension(topology::DimensionKind::ring, 4), dimension(topology::DimensionKind::ring, 4)});
  simulate::SimulateOptions options;
  const auto folded = simulate::simulate(workload, machine, options).value();
  EXPECT_EQ(folded.fold.simulated, 4);
  EXPECT_THAT(folded.fold.reasons,
              ::testing::ElementsAre(::testing::HasSubstr("dp covers 2 of the 4 devices of ring")));
  options.fold = false;
  const auto all = simulate::simulate(workload, machine, options).value();
  EXPECT_EQ(folded.step_time, all.step_time);
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    EXPECT_EQ(all.finish[rank], folded.finish[rank / 4]);
  }
}

TEST(Fold, RefusalsSayWhy) {
  const plan::RankLayout layout{{{plan::Axis::tp, 2}, {plan::Axis::dp, 4}, {plan::Axis::pp, 1}}};
  const auto reasons = [&](const machine::Machine& machine,
                           collective::CollectiveAlgorithm algorithm) {
    simulate::SimulateOptions options;
    options.algorithms.fill(plan::kAxisCount, algorithm);
    const graph::Workload workload =
        workload_of(layout, {{collective_node("a", plan::Axis::tp, 1_MiB),
                              collective_node("b", plan::Axis::dp, 1_MiB)}});
    return simulate::simulate(workload, machine, options).value().fold.reasons;
  };
  const auto has = [](const std::vector<std::string>& found, const std::string& part) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& reason) {
      return reason.find(part) != std::string::npos;
    });
  };
  const auto ring = machine_of({dimension(topology::DimensionKind::ring, 8)});
  EXPECT_TRUE(has(reasons(ring, collective::CollectiveAlgorithm::ring),
                  "covers 2 of the 8 devices of ring"));
  const auto mesh = machine_of({dimension(topology::DimensionKind::switched, 2),
                                dimension(topology::DimensionKind::mesh, 4)});
  EXPECT_TRUE(has(reasons(mesh, collective::CollectiveAlgorithm::ring), "dp lies on mesh"));
  const auto tree = machine_of({dimension(topology::DimensionKind::switched, 8)});
  EXPECT_TRUE(has(reasons(tree, collective::CollectiveAlgorithm::double_binary_tree),
                  "double_binary_tree"));
  EXPECT_TRUE(reasons(tree, collective::CollectiveAlgorithm::ring).empty());
}

/// Kernel time of one role over all its instances.
Time total_work(const graph::Workload& workload, std::size_t role) {
  Time work{0};
  for (const graph::Node& node : workload.programs[role].templates[0].nodes) {
    for (const graph::Operator& op : node.operators) {
      work += op.bytes / 1_GBps;
    }
  }
  return work * workload.source->list()->length(static_cast<int>(role));
}

TEST(Simulate, NeverFasterThanTheComputeOfAnyStage) {
  EXPECT_TRUE(rc::check("lower bound", [] {
    const FoldCase c = any_case();
    const auto timeline = simulate::simulate(c.workload, c.machine, c.options);
    RC_ASSERT(timeline.has_value());
    for (std::size_t role = 0; role < c.workload.programs.size(); ++role) {
      RC_ASSERT(timeline->step_time >= total_work(c.workload, role));
    }
  }));
}

TEST(Simulate, MoreBandwidthIsNeverSlowerWithoutContention) {
  EXPECT_TRUE(rc::check("monotone in bandwidth", [] {
    FoldCase c = any_case();
    c.machine.device.overlap_memory = 0;
    const auto slow = simulate::simulate(c.workload, c.machine, c.options);
    for (topology::NetworkDimension& d : c.machine.network) {
      d.bandwidth = d.bandwidth * 2.0;
    }
    const auto fast = simulate::simulate(c.workload, c.machine, c.options);
    RC_ASSERT(slow.has_value() && fast.has_value());
    // Sharing is greedy, so anomalies within the longest transfer are possible in theory (Graham);
    // a step never grows by more than a percent here.
    RC_ASSERT(to_seconds(fast->step_time) <= 1.01 * to_seconds(slow->step_time));
  }));
}

}  // namespace
}  // namespace orrery
