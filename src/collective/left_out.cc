// SPDX-License-Identifier: Apache-2.0
#include "collective/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
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
bool part_of_custom(Algorithm algorithm) {
  return algorithm == Algorithm::one_shot || algorithm == Algorithm::two_shot ||
         algorithm == Algorithm::custom_eager || algorithm == Algorithm::custom_trtllm;
}

std::string_view tree_left_out(Kind kind, const std::vector<Extent>& extents) {
  if (extents.back().dimension == 0) {
    return "inside a node NCCL's tree is a chain, as slow as its ring";
  }
  return kind == Kind::all_reduce
             ? "auto gives trees the bandwidth of rings at most, as measured over two nodes"
             : "";
}

}  // namespace

std::string_view left_out_because(Kind kind, Algorithm algorithm,
                                  const std::vector<Extent>& extents) {
  switch (algorithm) {
    case Algorithm::automatic:
    case Algorithm::ring:
    case Algorithm::pairwise:
    case Algorithm::rail:
      return {};
    case Algorithm::direct:
      return exchanges(kind) ? "" : "NCCL has no direct algorithm for it";
    case Algorithm::double_binary_tree:
      return tree_left_out(kind, extents);
    case Algorithm::in_switch:
      return extents.size() > 1 ? tree_left_out(kind, extents) : "";
    case Algorithm::halving_doubling:
      return "NCCL does not have it";
    case Algorithm::hierarchical:
    case Algorithm::themis:
      return "NCCL runs through all dimensions at once";
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::custom:
    case Algorithm::custom_eager:
    case Algorithm::custom_trtllm:
      return "a kernel of serving engines; training calls NCCL";
  }
  return {};
}

std::vector<std::string> left_out(const SweepCase& on, const SweepOptions& options) {
  std::vector<std::string> lines;
  for (const Named<Algorithm>& algorithm : kNames<Algorithm>) {
    std::string_view reason = left_out_because(options.kind, algorithm.value, on.extents);
    if (algorithm.value == Algorithm::pairwise && peers_count(on.extents, on.machine)) {
      reason = "NCCL's sends are all under way at once";
    }
    if (options.algorithm != Algorithm::automatic || reason.empty() ||
        part_of_custom(algorithm.value) ||
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
