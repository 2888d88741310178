// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_chains.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace orrery::spmd {

FormSets::FormSets() : codes_(MeshForm::kCodes + 1) {
  for (int code = 0; code < MeshForm::kCodes; ++code) {
    codes_[of(code)] = {code};
  }
}

bool FormSets::has(Id set, int code) const {
  return std::ranges::binary_search(codes_[set], code);
}

FormSets::Id FormSets::numbered(std::vector<int> codes) {
  if (codes.size() < 2) {
    return codes.empty() ? 0 : of(codes.front());
  }
  const auto [known, is_new] = ids_.try_emplace(std::move(codes), static_cast<Id>(codes_.size()));
  if (is_new) {
    codes_.push_back(known->first);
  }
  return known->second;
}

FormSets::Id FormSets::with(Id set, int code) {
  if (set == of(code) || set == 0) {
    return of(code);
  }
  const std::uint64_t key = std::uint64_t{set} * MeshForm::kCodes + static_cast<unsigned>(code);
  const auto [entry, is_new] = more_.try_emplace(key, set);
  if (is_new && !has(set, code)) {
    std::vector<int> codes = codes_[set];
    codes.insert(std::ranges::lower_bound(codes, code), code);
    entry->second = numbered(std::move(codes));
  }
  return entry->second;
}

FormSets::Id FormSets::of(const std::bitset<MeshForm::kCodes>& codes) {
  std::vector<int> list;
  for (std::size_t code = 0; code < codes.size(); ++code) {
    if (codes[code]) {
      list.push_back(static_cast<int>(code));
    }
  }
  return numbered(std::move(list));
}

MeshChains::MeshChains(const OperatorGraph& graph, int tensor, const MeshPrices& prices,
                       const MeshWeights& weights)
    : mesh_(prices.mesh()), index_(MeshForm::kCodes) {
  const auto rank = static_cast<int>(graph.tensor(tensor).shape.size());
  assert(rank <= MeshForm::kDimensions && "codes of three bits");
  const std::vector<MeshForm> forms = forms_on(mesh_, rank);
  count_ = forms.size();
  cost_.assign(count_ * count_, kNever);
  first_.resize(count_ * count_);
  std::vector<int> codes;
  for (const MeshForm& form : forms) {
    index_[static_cast<std::size_t>(form.code())] = static_cast<int>(codes.size());
    codes.push_back(form.code());
  }
  for (const MeshForm& form : forms) {
    cost_[place(form.code(), form.code())] = Time(0);
    for (const MeshStep& step : steps_from(form, rank, mesh_)) {
      const std::size_t edge = place(form.code(), after(form, step, mesh_).code());
      const Time cost = weights.of(prices.convert(graph, tensor, form, step),
                                   weights.communication_of(graph, tensor, step.group));
      if (cost < cost_[edge]) {
        cost_[edge] = cost;
        first_[edge] = step;
      }
    }
  }
  join(codes);
  for (const MeshForm& to : forms) {  // a copy is held, whatever it comes from
    const Time copy = weights.of(prices.held(graph, tensor, to, true).total());
    for (const int from : codes) {
      Time& cost = cost_[place(from, to.code())];
      cost += from != to.code() && cost < kNever ? copy : Time(0);
    }
  }
}

/// Makes the chains of the steps, by the forms on the way (Floyd and Warshall).
void MeshChains::join(const std::vector<int>& codes) {
  for (const int middle : codes) {
    for (const int from : codes) {
      const std::size_t head = place(from, middle);
      if (cost_[head] >= kNever || from == middle) {
        continue;
      }
      lead(head, place(middle, codes.front()), place(from, codes.front()));
    }
  }
}

void MeshChains::lead(std::size_t head, std::size_t tail, std::size_t row) {
  for (std::size_t to = 0; to < count_; ++to) {
    const Time cost = cost_[head] + cost_[tail + to];
    if (cost < cost_[row + to]) {
      cost_[row + to] = cost;
      first_[row + to] = first_[head];
    }
  }
}

std::vector<MeshStep> MeshChains::steps(int from, int to) const {
  assert(cost(from, to) < kNever && "a chain");
  std::vector<MeshStep> steps;
  while (from != to) {
    steps.push_back(first_[place(from, to)]);
    from = after(MeshForm::of_code(from), steps.back(), mesh_).code();
  }
  return steps;
}

int MeshChains::nearest(const std::vector<int>& forms, int to) const {
  assert(!forms.empty() && "a form");
  int best = forms.front();
  for (auto form = std::next(forms.begin()); form != forms.end(); ++form) {
    best = cost(*form, to) < cost(best, to) ? *form : best;
  }
  return best;
}

Time MeshChains::to_have(const std::vector<int>& forms, const std::vector<int>& others,
                         Time most) const {
  Time sum(0);
  for (const int to : others) {
    if (sum > most) {
      break;
    }
    if (!std::ranges::binary_search(forms, to)) {
      sum += cost(nearest(forms, to), to);
    }
  }
  return sum;
}

}  // namespace orrery::spmd
