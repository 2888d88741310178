// SPDX-License-Identifier: Apache-2.0
/// Closed forms of phases: by hand, and equal to the run message by message.
#include "phase_time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "compat/astra/run.h"
#include "random_input.h"

namespace orrery::astra {
namespace {

constexpr double kGiBps = 1073741824.0;

/// 1 MiB among 8 NPUs with 50 GB/s and 500 ns, delay 10 ns, local memory 1600 GB/s.
Time of(Building building, PhaseType type, Implementation implementation,
        Quirks quirks = Quirks::all()) {
  const Wires wires({{building, 8, Bandwidth(50 * kGiBps), 500_ns}});
  const PhaseRules rules{wires, {10_ns, 1600_GBps}, quirks};
  PhaseRequest request;
  request.type = type;
  request.implementation = implementation;
  request.axis = {0, 8, 1, true};
  request.size = 1_MiB;
  return phase_time(make_phase(request, rules), wires).value_or(Time(-1));
}

TEST(PhaseTime, ring_all_reduce_sends_two_rounds_of_eighths) {
  // m = 131072 B: T = 500 + 131072 / 53.687 = 2941; r = 3 * floor(81.9) = 243.
  EXPECT_EQ(of(Building::ring, PhaseType::all_reduce, {Algorithm::ring, 0}),
            10_ns + 14 * 2951_ns + 7 * 243_ns);
}

TEST(PhaseTime, ring_reduce_scatter_all_gather_and_all_to_all) {
  EXPECT_EQ(of(Building::ring, PhaseType::reduce_scatter, {Algorithm::ring, 0}),
            10_ns + 7 * (2951_ns + 243_ns));
  // All-gather moves the whole 1 MiB: T = 500 + 19531.25 = 20031.
  EXPECT_EQ(of(Building::ring, PhaseType::all_gather, {Algorithm::ring, 0}), 10_ns + 7 * 20041_ns);
  // 8 * 7 / 2 messages.
  EXPECT_EQ(of(Building::ring, PhaseType::all_to_all, {Algorithm::ring, 0}), 10_ns + 28 * 2951_ns);
}

TEST(PhaseTime, direct_all_reduce_takes_two_messages) {
  EXPECT_EQ(of(Building::fully_connected, PhaseType::all_reduce, {Algorithm::direct, 0}), 6155_ns);
}

TEST(PhaseTime, direct_waits_for_the_farthest_peer) {
  // Ring of 8: 4 hops. T = 2000 + 2441.4 = 4441.
  EXPECT_EQ(of(Building::ring, PhaseType::all_to_all, {Algorithm::direct, 0}),
            10_ns + 4441_ns + 10_ns);
}

TEST(PhaseTime, halving_doubling_charges_the_reductions_of_the_next_message_or_of_its_own) {
  // Switch: T(c/2) = 10765, T(c/4) = 5882, T(c/8) = 3441; r(c/2) = 981, r(c/4) = 489, r(c/8) = 243.
  const Implementation halving{Algorithm::halving_doubling, 0};
  const Time messages = 2 * (10765_ns + 5882_ns + 3441_ns) + 6 * 10_ns + 10_ns;
  EXPECT_EQ(of(Building::switched, PhaseType::all_reduce, halving), messages + 489_ns + 243_ns);
  EXPECT_EQ(of(Building::switched, PhaseType::all_reduce, halving, Quirks::none()),
            messages + 981_ns + 489_ns + 243_ns);
}

TEST(PhaseTime, double_binary_tree_goes_up_and_down_whole) {
  // T = 1000 + 19531 = 20531, r = 3 * 655 = 1965, three levels: 10 + 6 * 20541 + 5 * 1965; right:
  // reductions on the way up only.
  const Implementation tree{Algorithm::double_binary_tree, 0};
  EXPECT_EQ(of(Building::switched, PhaseType::all_reduce, tree), 133081_ns);
  EXPECT_EQ(of(Building::switched, PhaseType::all_reduce, tree, Quirks::none()),
            10_ns + 6 * 20541_ns + 3 * 1965_ns);
}

TEST(PhaseTime, windows_have_no_closed_form) {
  EXPECT_EQ(of(Building::fully_connected, PhaseType::all_reduce, {Algorithm::direct, 2}), Time(-1));
}

/// One chunk of one collective in one dimension.
RC_GTEST_PROP(PhaseTimeProperty, equals_the_run_message_by_message, ()) {
  RunInput input;
  input.network = random_network(1, {2, 3, 4, 5, 7, 8, 16});
  input.system = random_system(1, {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling,
                                   Algorithm::double_binary_tree});
  input.system.splits = 1;
  input.system.inter_dimension = InterDimension::ascending;
  input.traces.groups.emplace_back();
  input.traces.program_of.assign(static_cast<std::size_t>(input.network[0].size), 0);
  input.traces.programs.emplace_back();
  chakra::Node node = random_collective(1);
  node.has_involved = false;
  node.size = Bytes(pick(16, 1 << 20));
  append_random(input.traces.programs[0], node);
  RunOptions options = random_options();
  options.fold = false;
  options.rendezvous = false;
  const auto result = run(input, options);
  const Wires wires(input.network);
  const auto operation = static_cast<std::size_t>(
      node.collective == chakra::CollectiveType::all_reduce       ? Operation::all_reduce
      : node.collective == chakra::CollectiveType::all_gather     ? Operation::all_gather
      : node.collective == chakra::CollectiveType::reduce_scatter ? Operation::reduce_scatter
                                                                  : Operation::all_to_all);
  const Implementation implementation = input.system.implementation[operation][0];
  const PhaseType type = operation == 0   ? PhaseType::all_reduce
                         : operation == 1 ? PhaseType::all_gather
                         : operation == 2 ? PhaseType::reduce_scatter
                                          : PhaseType::all_to_all;
  if (unsupported(type, implementation.algorithm, wires.npus(), options.quirks)) {
    RC_ASSERT(!result);
    return;
  }
  PhaseRequest request;
  request.type = type;
  request.implementation = implementation;
  request.axis = {0, wires.npus(), 1, true};
  request.size = node.size;
  const PhaseRules rules{
      wires, {input.system.endpoint_delay, input.system.local_memory_bandwidth}, options.quirks};
  const auto closed = phase_time(make_phase(request, rules), wires);
  RC_CLASSIFY(closed.has_value(), "closed form");
  RC_CLASSIFY(!closed.has_value(), "none");
  if (closed) {
    Time slowest{0};
    for (const RunResult::Class& each : result->classes) {
      slowest = std::max(slowest, each.finish);
    }
    RC_LOG() << describe(input, options);
    RC_ASSERT(slowest == *closed);
  }
}

}  // namespace
}  // namespace orrery::astra
