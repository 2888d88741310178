// SPDX-License-Identifier: Apache-2.0
#include "collective/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "collective/algorithm.h"
#include "collective/flat.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

constexpr std::size_t kMostSizes = 64;

/// Rounding to picoseconds is no reason to say something.
constexpr double kFaster = 1.001;

struct Range {
  Bytes smallest{0};
  Bytes largest{0};
  double times = kFaster;  ///< as fast as auto, at most
};

std::optional<Range> where_faster(Algorithm algorithm, const SweepCase& on, Kind kind) {
  std::optional<Range> range;
  const std::size_t step = 1 + (on.sizes.size() - 1) / kMostSizes;
  for (std::size_t i = 0; i < on.sizes.size(); i += step) {
    const Bytes size = on.sizes[i];
    const Time automatic =
        collective_time(kind, size, on.extents, Algorithm::automatic, on.machine);
    const double times = automatic / collective_time(kind, size, on.extents, algorithm, on.machine);
    if (times > kFaster) {
      range = range.value_or(Range{.smallest = size});
      range->largest = size;
      range->times = std::max(range->times, times);
    }
  }
  return range;
}

/// `custom` stands for the kernels that it has and the other ways to launch them.
bool part_of_custom(const AlgorithmRow& row) {
  return !row.launch.empty() && row.value != Algorithm::custom;
}

}  // namespace

std::string_view serving_kernel(Kind /*kind*/, const std::vector<Extent>& /*extents*/) {
  return "a kernel of serving engines; training calls NCCL";
}

std::string_view library_is_flat(Kind /*kind*/, const std::vector<Extent>& /*extents*/) {
  return "NCCL runs through all dimensions at once";
}

std::string_view left_out_because(Kind kind, Algorithm algorithm,
                                  const std::vector<Extent>& extents) {
  const auto reason = row_of(algorithm).left_out;
  return reason ? reason(kind, extents) : "";
}

std::vector<std::string> left_out(const SweepCase& on, const SweepOptions& options) {
  std::vector<std::string> lines;
  for (const AlgorithmRow& algorithm : algorithms()) {
    std::string_view reason = left_out_because(options.kind, algorithm.value, on.extents);
    if (algorithm.value == Algorithm::pairwise && peers_count(on.extents, on.machine)) {
      reason = "NCCL's sends are all under way at once";
    }
    if (options.algorithm != Algorithm::automatic || reason.empty() || part_of_custom(algorithm) ||
        !performs(options.kind, algorithm.value, on.extents, on.machine)) {
      continue;
    }
    if (const auto range = where_faster(algorithm.value, on, options.kind)) {
      lines.push_back(fmt::format("{} would be faster from {} to {}, up to {:.2f} times: {}",
                                  algorithm.name, to_string(range->smallest),
                                  to_string(range->largest), range->times, reason));
    }
  }
  return lines;
}

}  // namespace orrery::collective
