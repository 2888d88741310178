// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_chains.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace orrery::spmd {

MeshChains::MeshChains(const OperatorGraph& graph, int tensor, const MeshPrices& prices) {
  const auto rank = static_cast<int>(graph.tensor(tensor).shape.size());
  assert(rank <= MeshForm::kDimensions && "codes of three bits");
  std::vector<int> codes;
  const int forms = Form::gather(rank).code();
  for (int pair = 0; pair < forms * forms; ++pair) {
    codes.push_back(pair % forms + 8 * (pair / forms));
  }
  const auto put = [](auto& table, int from, int to, const auto& value) {
    table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = value;
  };
  for (auto& row : cost_) {
    row.fill(kNever);
  }
  for (const int code : codes) {
    put(cost_, code, code, Time(0));
    const MeshForm form = MeshForm::of_code(code);
    for (const MeshStep& step : steps_from(form, rank)) {
      const int to = after(form, step).code();
      const Time cost = prices.convert(graph, tensor, form, step);
      if (cost < at(cost_, code, to)) {
        put(cost_, code, to, cost);
        put(first_, code, to, step);
      }
    }
  }
  for (const int middle : codes) {
    for (const int from : codes) {
      for (const int to : codes) {
        const Time cost = at(cost_, from, middle) + at(cost_, middle, to);
        if (cost < at(cost_, from, to)) {
          put(cost_, from, to, cost);
          put(first_, from, to, at(first_, from, middle));
        }
      }
    }
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
