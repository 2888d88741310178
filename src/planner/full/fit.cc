// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <tuple>

#include "planner/full/search_state.h"

namespace orrery::full {
namespace {

bool may_fit(SearchState& search, const plan::Plan& plan) {
  const auto least = search.bounds.least_memory(plan);
  return least && *least <= search.capacity;
}

/// Gives it the fewest layers more with which fits(plan); false: it does not with all of them, nor
/// with all but one (the last repeats its own layer while nothing else is kept).
template <class Fits>
bool repeat_enough(const SearchState& search, plan::Plan& plan, const Fits& fits) {
  const std::int64_t most = search.space.layers_to_recompute(plan);
  std::int64_t too_few = plan.recompute_layers;
  const auto fits_with = [&](std::int64_t layers) {
    plan.recompute_layers = layers < most ? layers : 0;
    return fits(plan);
  };
  std::int64_t enough = most;
  if (most == 0 || (!fits_with(most) && !fits_with(--enough))) {
    return false;
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (fits_with(middle) ? enough : too_few) = middle;
  }
  plan.recompute_layers = enough < most ? enough : 0;
  return true;
}

}  // namespace

bool may_fit_again(SearchState& search, plan::Plan& plan) {
  return may_fit(search, plan) ||
         repeat_enough(search, plan, [&](const plan::Plan& more) { return may_fit(search, more); });
}

bool recompute_enough(SearchState& search, plan::Plan& plan) {
  return repeat_enough(search, plan,
                       [&](const plan::Plan& more) { return search.memory(more).first; });
}

std::optional<Bytes> fit(SearchState& search, plan::Plan& plan) {
  if (!may_fit_again(search, plan)) {
    return std::nullopt;
  }
  auto [fits, memory] = search.memory(plan);
  if (!fits && recompute_enough(search, plan)) {
    std::tie(fits, memory) = search.memory(plan);
  }
  return fits ? std::optional(memory) : std::nullopt;
}

}  // namespace orrery::full
