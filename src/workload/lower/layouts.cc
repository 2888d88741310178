// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/layouts.h"

#include <algorithm>

#include "collective/layout/steps.h"

namespace orrery::lower {
namespace {

using graph::Placement;

/// A rank has more of the tensor inside the operator.
bool expands(const Placement& between, const Placement& inside) {
  return between.kind == Placement::Kind::shard && inside.kind != Placement::Kind::shard;
}

}  // namespace

std::vector<Conversion> conversions(const Choice& choice, const Border& border, Crossing crossing) {
  const bool of_value = crossing == Crossing::value_in || crossing == Crossing::value_out;
  const bool in = crossing == Crossing::value_in || crossing == Crossing::gradient_in;
  std::vector<Conversion> steps;
  Bytes bytes = border.bytes;
  for (const AxisLayout& layout : border.axes) {
    const CutAxis& axis = choice.axes[layout.axis];
    const Placement& between = of_value ? layout.between.value : layout.between.gradient;
    const Placement& inside = of_value ? layout.inside.value : layout.inside.gradient;
    if (axis.size == 1 || between == inside) {
      continue;
    }
    bytes = expands(between, inside) && !axis.counts_all ? bytes * axis.size : bytes;
    const Placement& from = in ? between : inside;
    const Placement& to = in ? inside : between;
    const auto operation = layout::operation_between(from, to);
    if (const auto kind = operation ? layout::collective_of(*operation) : std::nullopt) {
      steps.push_back({layout.axis, *kind, bytes});
      if (kind == graph::CollectiveKind::all_to_all && !axis.exchanges_rows) {
        steps.back().packing = layout::packing_passes(*operation, from, to);
      }
    }
  }
  if (!in) {
    std::ranges::reverse(steps);
  }
  return steps;
}

std::int64_t gathered(const Choice& choice, const std::vector<Conversion>& steps) {
  std::int64_t ranks = 1;
  for (const Conversion& step : steps) {
    ranks *= step.kind == graph::CollectiveKind::all_gather ? choice.axes[step.axis].size : 1;
  }
  return ranks;
}

}  // namespace orrery::lower
