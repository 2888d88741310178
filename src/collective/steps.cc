// SPDX-License-Identifier: Apache-2.0
#include "collective/steps.h"

#include <bit>

#include "collective/algorithm.h"

namespace orrery::collective {
namespace {

/// Links that a member's messages to all that it reaches forwards on a cycle of n pass.
double half_way_round(std::int64_t n) {
  const std::int64_t half = n / 2;
  return static_cast<double>(half * (half + 1)) / 2;
}

}  // namespace

double across_the_middle(std::int64_t n) {
  const std::int64_t pairs = n * n / 4;
  return static_cast<double>(pairs);
}

double exchange_load(std::int64_t members, const Fabric& fabric) {
  const auto p = static_cast<double>(members);
  const auto longest = static_cast<double>(fabric.longest);
  switch (fabric.form) {
    case Fabric::Form::switched:
      return (p - 1) / p;
    case Fabric::Form::complete:
      return fabric.links / p;
    case Fabric::Form::cycle:  // distances 1 ... floor(n/2) go forwards, the half way of even n too
      return fabric.links * half_way_round(fabric.longest) / longest;
    case Fabric::Form::line:
      return fabric.links * across_the_middle(fabric.longest) / longest;
  }
  return 0;
}

Gap exchange_gap(graph::CollectiveKind /*kind*/, std::int64_t members, std::int64_t gap) {
  const std::int64_t before = gap + 1;
  const double part = static_cast<double>(before * (members - before)) / across_the_middle(members);
  return {part, part};
}

int ceil_log2(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

std::optional<StepCount> count_steps(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                     std::int64_t members, const Fabric& fabric) {
  const auto counts = row_of(algorithm).counts;
  return counts ? counts(kind, members, fabric) : std::nullopt;
}

}  // namespace orrery::collective
