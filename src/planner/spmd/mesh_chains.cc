// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_chains.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace orrery::spmd {

MeshChains::MeshChains(const OperatorGraph& graph, int tensor, const MeshPrices& prices) {
  const auto rank = static_cast<int>(graph.tensor(tensor).shape.size());
  assert(rank <= MeshForm::kDimensions && "codes of three bits");
  for (auto& row : cost_) {
    row.fill(kNever);
  }
  const int forms = Form::gather(rank).code();
  std::vector<int> codes(static_cast<std::size_t>(forms * forms));
  for (int pair = 0; pair < forms * forms; ++pair) {
    const int code = pair % forms + 8 * (pair / forms);
    codes[static_cast<std::size_t>(pair)] = code;
    cost_[static_cast<std::size_t>(code)][static_cast<std::size_t>(code)] = Time(0);
    const MeshForm form = MeshForm::of_code(code);
    for (const MeshStep& step : steps_from(form, rank)) {
      offer(code, after(form, step).code(), prices.convert(graph, tensor, form, step), step);
    }
  }
  for (const int middle : codes) {
    for (const int from : codes) {
      for (const int to : codes) {
        offer(from, to, at(cost_, from, middle) + at(cost_, middle, to), at(first_, from, middle));
      }
    }
  }
}

void MeshChains::offer(int from, int to, Time cost, const MeshStep& first) {
  if (cost < at(cost_, from, to)) {
    cost_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = cost;
    first_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = first;
  }
}

std::vector<MeshStep> MeshChains::steps(int from, int to) const {
  assert(cost(from, to) < kNever && "a chain");
  std::vector<MeshStep> steps;
  while (from != to) {
    steps.push_back(at(first_, from, to));
    from = after(MeshForm::of_code(from), steps.back()).code();
  }
  return steps;
}

int MeshChains::nearest(std::uint64_t forms, int to) const {
  assert(forms != 0 && "a form");
  int best = std::countr_zero(forms);
  for (forms &= forms - 1; forms != 0; forms &= forms - 1) {
    const int code = std::countr_zero(forms);
    best = cost(code, to) < cost(best, to) ? code : best;
  }
  return best;
}

Time MeshChains::to_have(std::uint64_t forms, std::uint64_t others, Time most) const {
  Time sum(0);
  for (others &= ~forms; others != 0 && sum <= most; others &= others - 1) {
    const int to = std::countr_zero(others);
    sum += cost(nearest(forms, to), to);
  }
  return sum;
}

}  // namespace orrery::spmd
