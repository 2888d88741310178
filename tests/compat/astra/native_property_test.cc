// SPDX-License-Identifier: Apache-2.0
/// Native semantics on random networks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "compat/astra/chunk_orders.h"
#include "native_input.h"

namespace orrery::astra {
namespace {

using namespace native_tests;  // NOLINT(google-build-using-namespace): this folder's own

RC_GTEST_PROP(NativeProperty, ThemisIsHardlyEverSlowerThanTheNaturalOrder, ()) {
  // Never under the model of phase times, which is that of the run but for who waits for whom among
  // chunks that come at one instant. Sizes divide evenly, so that no chunk is tiny.
  std::vector<Dimension> network;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
    network.push_back(dimension(*rc::gen::element(Building::ring, Building::switched),
                                *rc::gen::inRange<std::int64_t>(2, 6), *rc::gen::inRange(20, 200),
                                Time(1000 * *rc::gen::inRange(0, 1000))));
  }
  RunInput input =
      input_of(network, Algorithm::ring,
               {collective(0,
                           *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                             CollectiveType::reduce_scatter),
                           Bytes(0))});
  input.system.splits = *rc::gen::inRange(1, 33);
  constexpr std::int64_t kAllMembers = 3600;  // a multiple of every count that is drawn
  input.traces.programs[0].nodes[0].size =
      Bytes(kAllMembers * input.system.splits * *rc::gen::inRange(100, 1000));
  input.system.intra_dimension = IntraDimension::smallest_chunk_first;
  const double natural = to_seconds(native_time(input));
  input.system.inter_dimension = InterDimension::themis;
  RC_ASSERT(to_seconds(native_time(input)) <= 1.1 * natural);
}

/// Every rank has its line in the first dimension as slot 1 and in the last as slot 2; collectives
/// take one of them or the world.
void group_by_lines(RunInput& input) {
  const Wires wires(input.network);
  const int last = wires.dimensions() - 1;
  for (const int d : {0, last}) {
    for (std::int64_t rank = 0; rank < wires.npus(); ++rank) {
      if (wires.coordinate(rank, d) == 0) {
        chakra::Group group;
        group.name = std::to_string(input.traces.groups.size());
        for (std::int64_t i = 0; i < wires.size(d); ++i) {
          group.ranks.push_back(rank + i * wires.stride(d));
        }
        input.traces.groups.push_back(group);
      }
    }
  }
  for (std::int64_t rank = 0; rank < wires.npus(); ++rank) {
    input.traces.first_slot.push_back(static_cast<std::uint32_t>(2 * rank));
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const std::size_t half = static_cast<std::size_t>(wires.npus() / wires.size(0));
      const std::size_t from = slot == 0 ? 1 : 1 + half;
      for (std::size_t g = from; g < (slot == 0 ? 1 + half : input.traces.groups.size()); ++g) {
        const auto& ranks = input.traces.groups[g].ranks;
        if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) {
          input.traces.group_slots.push_back(static_cast<std::uint32_t>(g));
        }
      }
    }
  }
  for (chakra::Node& node : input.traces.programs[0].nodes) {
    node.group = *rc::gen::inRange<std::uint32_t>(0, 3);
  }
}

/// Networks, algorithms and collectives that fold.
struct Drawn {
  RunInput input;
  RunOptions options;
};
Drawn draw() {
  const int dimensions = *rc::gen::inRange(1, 4);
  std::vector<Dimension> network;
  for (int d = 0; d < dimensions; ++d) {
    network.push_back(
        dimension(*rc::gen::element(Building::ring, Building::fully_connected, Building::switched),
                  *rc::gen::inRange<std::int64_t>(2, 6), *rc::gen::inRange(1, 200),
                  Time(1000 * *rc::gen::inRange(0, 1000))));
  }
  std::vector<chakra::Node> nodes;
  for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
    nodes.push_back(
        collective(nodes.size(),
                   *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                     CollectiveType::reduce_scatter, CollectiveType::all_to_all),
                   Bytes(*rc::gen::inRange(1000, 10'000'000))));
  }
  Drawn drawn{input_of(network, Algorithm::ring, nodes), {}};
  for (auto& list : drawn.input.system.implementation) {
    for (std::size_t d = 0; d < network.size(); ++d) {
      list[d].algorithm = *rc::gen::element(Algorithm::ring, Algorithm::direct,
                                            Algorithm::halving_doubling, Algorithm::in_switch);
      if (network[d].building != Building::switched && list[d].algorithm == Algorithm::in_switch) {
        list[d].algorithm = Algorithm::ring;
      }
    }
  }
  drawn.input.system.splits = *rc::gen::inRange(1, 6);
  drawn.input.system.endpoint_delay = Time(1000 * *rc::gen::inRange(0, 50));
  drawn.input.system.policy = *rc::gen::element(Policy::lifo, Policy::fifo);
  drawn.input.system.local_memory_bandwidth = Bandwidth(*rc::gen::inRange(10, 2000) * 1e9);
  drawn.input.system.inter_dimension =
      *rc::gen::element(InterDimension::ascending, InterDimension::themis);
  drawn.input.system.intra_dimension =
      *rc::gen::element(IntraDimension::fifo, IntraDimension::smallest_chunk_first);
  if (*rc::gen::arbitrary<bool>()) {
    group_by_lines(drawn.input);
  }
  drawn.options = native(drawn.input);
  drawn.options.native->forwarding =
      *rc::gen::element(Forwarding::cut_through, Forwarding::store_and_forward);
  return drawn;
}

RC_GTEST_PROP(NativeProperty, FoldedRunsEqualUnfoldedOnes, ()) {
  Drawn drawn = draw();
  const RunResult folded = run_native(drawn.input, drawn.options);
  drawn.options.fold = false;
  const RunResult every = run_native(drawn.input, drawn.options);
  RC_CLASSIFY(folded.unfolded.empty());
  for (const RunResult::Class& one : every.classes) {
    RC_ASSERT(one.finish ==
              folded.classes[folded.class_of[static_cast<std::size_t>(one.rank)]].finish);
  }
  for (std::size_t d = 0; d < every.use.size(); ++d) {
    RC_ASSERT(every.use[d].busiest == folded.use[d].busiest);
  }
}

RC_GTEST_PROP(NativeProperty, OccupancyOnlyEverDelays, ()) {
  // One collective at a time, quirks off on both sides: a run with links is never shorter than one
  // in which no message delays another (to the nanosecond per message that the latter rounds down).
  Drawn drawn = draw();
  for (auto& list : drawn.input.system.implementation) {
    for (Implementation& one : list) {
      one.algorithm = one.algorithm == Algorithm::in_switch ? Algorithm::ring : one.algorithm;
    }
  }
  drawn.input.traces.programs[0].nodes.resize(1);
  drawn.input.system.splits = 1;
  drawn.input.system.inter_dimension = InterDimension::ascending;  // Themis knows of the links
  const Time with = last(run_native(drawn.input, drawn.options));
  drawn.options.native.reset();
  RC_ASSERT(with >= last(run_native(drawn.input, drawn.options)));
}

RC_GTEST_PROP(NativeProperty, PhaseTimesOfThemisAreThoseOfTheMessages, ()) {
  // One collective in one dimension, where every link has one sender at a time. Steps are floored
  // to nanoseconds in the closed form only.
  const auto building =
      *rc::gen::element(Building::ring, Building::fully_connected, Building::switched);
  const auto algorithm =
      building == Building::ring
          ? Algorithm::ring
          : *rc::gen::element(Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling);
  const auto type = *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                      CollectiveType::reduce_scatter);
  RunInput input =
      input_of({dimension(building, *rc::gen::inRange<std::int64_t>(2, 9),
                          *rc::gen::inRange(1, 200), Time(1000 * *rc::gen::inRange(0, 1000)))},
               algorithm, {collective(0, type, Bytes(*rc::gen::inRange(1000, 9'000'000)))});
  input.system.endpoint_delay = Time(1000 * *rc::gen::inRange(0, 50));
  const Wires wires(input.network);
  const std::int64_t size = input.network[0].size;
  const PhaseType phase = type == CollectiveType::all_reduce   ? PhaseType::all_reduce
                          : type == CollectiveType::all_gather ? PhaseType::all_gather
                                                               : PhaseType::reduce_scatter;
  const PhaseRequest request{.type = phase,
                             .implementation = {algorithm, 0},
                             .axis = {.queue = 0, .size = size},
                             .size = input.traces.programs[0].nodes[0].size};
  const PhaseRules rules{wires, {input.system.endpoint_delay, std::nullopt}, Quirks::none()};
  const Time expected = alone(make_phase(request, rules), wires, true);
  const Time simulated = native_time(input);
  RC_ASSERT(std::abs((simulated - expected).value()) <= 4'000 * size);
}

RC_GTEST_PROP(NativeProperty, NoLinkIsBusyLongerThanTheRun, ()) {
  Drawn drawn = draw();
  drawn.options.native->sharing = *rc::gen::element(Sharing::fifo, Sharing::fair);
  drawn.input.system.active_chunks = *rc::gen::inRange(1, 4);
  const RunResult result = run_native(drawn.input, drawn.options);
  for (const DimensionUse& use : result.use) {
    RC_ASSERT(use.busiest <= last(result) + 1_us);
  }
}

}  // namespace
}  // namespace orrery::astra
