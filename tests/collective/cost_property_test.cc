// SPDX-License-Identifier: Apache-2.0
/// Laws of collective costs on any network.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "collective/cost.h"
#include "collective/left_out.h"
#include "networks.h"

namespace orrery::collective {
namespace {

using testing::dimension_of;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

std::vector<topology::Protocol> any_kernels() {
  std::vector<topology::Protocol> kernels;
  for (const char* launch : {"graph", "eager", "trtllm"}) {
    kernels.push_back({.name = launch,
                       .launch = Time(*rc::gen::inRange(0, 10'000'000)),
                       .step_latency = Time(*rc::gen::inRange(0, 1'000'000)),
                       .efficiency = *rc::gen::inRange(1, 11) / 10.0,
                       .buffer_copy = static_cast<double>(*rc::gen::inRange(0, 3)),
                       .at_least = Time(*rc::gen::inRange(0, 50'000'000))});
  }
  return kernels;
}

/// Any network of one to three dimensions and a group that fills some of it.
struct Case {
  machine::Machine machine;
  std::vector<Extent> extents;
  Kind kind = Kind::all_reduce;
  Algorithm algorithm = Algorithm::automatic;
  Bytes size{1};
};
Case any_case() {
  Case any;
  std::int64_t devices = 1;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
    const auto& kinds = kNames<topology::DimensionKind>;
    const auto kind = kinds[static_cast<std::size_t>(*rc::gen::inRange(0, 5))].value;
    any.machine.network.push_back(dimension_of(kind, *rc::gen::inRange<std::int64_t>(1, 17)));
    any.machine.network.back().message_overhead = Time(*rc::gen::inRange(0, 1'000'000));
    if (*rc::gen::arbitrary<bool>()) {
      any.machine.network.back().one_shot = any_kernels();
      any.machine.network.back().two_shot = any_kernels();
    }
    devices *= any.machine.network.back().size;
  }
  const auto stride = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto count = *rc::gen::inRange<std::int64_t>(2, 40);
  RC_PRE(stride * count <= devices);
  any.extents = extents_of(stride, count, any.machine);
  any.kind = kNames<Kind>[static_cast<std::size_t>(*rc::gen::inRange(0, 6))].value;
  // All but themis, whose greedy orders keep no law but those of themis_test.cc.
  const auto number = static_cast<std::size_t>(*rc::gen::inRange(0, 14));
  any.algorithm = kNames<Algorithm>[number < 9 ? number : number + 1].value;
  any.size = Bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40));
  return any;
}
Time time_of(const Case& any) {
  return collective_time(any.kind, any.size, any.extents, any.algorithm, any.machine);
}

RC_GTEST_PROP(CostProperty, EstimateEqualsPlan, ()) {
  const Case any = any_case();
  const auto phases = plan_collective(any.kind, any.size, any.extents, any.algorithm, any.machine);
  RC_ASSERT(time_of(any) == total_time(phases));
  RC_ASSERT(!phases.empty());
}

RC_GTEST_PROP(CostProperty, NeverFasterThanTheBytesThatMustLeaveAMember, ()) {
  // Every member must send (or, for all_gather, receive) its part of S: (N-1)/N S, 2(N-1)/N for
  // all_reduce, S for broadcast and send_recv; a rank has at most the sum of all its ports.
  const Case any = any_case();
  double members = 1;
  double bandwidth = 0;
  for (const Extent& extent : any.extents) {
    members *= static_cast<double>(extent.count);
    bandwidth += any.machine.network[static_cast<std::size_t>(extent.dimension)].bandwidth.value();
  }
  const bool whole = any.kind == Kind::broadcast || any.kind == Kind::send_recv;
  const double share = whole                          ? 1
                       : any.kind == Kind::all_reduce ? 2 * (members - 1) / members
                                                      : (members - 1) / members;
  const double bound = share * static_cast<double>(any.size.value()) / bandwidth;
  RC_ASSERT(to_seconds(time_of(any)) >= bound * 0.999999);
}

RC_GTEST_PROP(CostProperty, MoreBytesTakeLonger, ()) {
  Case any = any_case();
  const Time before = time_of(any);
  any.size += Bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40));
  RC_ASSERT(time_of(any) >= before);
}

RC_GTEST_PROP(CostProperty, MoreBandwidthIsNotSlower, ()) {
  Case any = any_case();
  const Time before = time_of(any);
  const auto d = static_cast<std::size_t>(any.extents.back().dimension);
  any.machine.network[d].bandwidth = any.machine.network[d].bandwidth * 1.5;
  RC_ASSERT(time_of(any) <= before);
}

RC_GTEST_PROP(CostProperty, AutomaticIsNotSlowerThanTheRing, ()) {
  Case any = any_case();
  any.algorithm = Algorithm::automatic;
  const Time automatic = time_of(any);
  any.algorithm = Algorithm::ring;
  RC_ASSERT(automatic <= time_of(any));
}

RC_GTEST_PROP(CostProperty, AutomaticIsAsFastAsAllThatItDoesNotLeaveOut, ()) {
  const Case any = any_case();
  const Time automatic =
      collective_time(any.kind, any.size, any.extents, Algorithm::automatic, any.machine);
  for (const Named<Algorithm>& algorithm : kNames<Algorithm>) {
    if (left_out_because(any.kind, algorithm.value, any.extents).empty() &&
        performs(any.kind, algorithm.value, any.extents, any.machine)) {
      RC_ASSERT(automatic <=
                collective_time(any.kind, any.size, any.extents, algorithm.value, any.machine));
    }
  }
}

RC_GTEST_PROP(CostProperty, AServingEngineHasTheFastestOfItsKernelsAndTheLibrary, ()) {
  Case any = any_case();
  any.kind = Kind::all_reduce;
  any.algorithm = Algorithm::custom;
  RC_PRE(performs(any.kind, any.algorithm, any.extents, any.machine));
  const Time custom = time_of(any);
  for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::two_shot}) {
    any.algorithm = algorithm;
    RC_ASSERT(custom <= time_of(any));
  }
}

}  // namespace
}  // namespace orrery::collective
