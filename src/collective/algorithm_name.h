// SPDX-License-Identifier: Apache-2.0
/// The algorithms of collectives by name; their rows (algorithm.h) say what each does and costs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/listed_names.h"
#include "base/names.h"

namespace orrery::collective {

/// The enumeration names the algorithms that the code asks for; others have a row alone
/// (algorithm.h).
enum class CollectiveAlgorithm : std::uint8_t {
  automatic,
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  pairwise,
  in_switch,
  rail,
  hierarchical,
  themis,
  one_shot,
  two_shot,
  custom,
  custom_eager,
  custom_trtllm
};
/// A row without a value of its own (algorithm.h).
inline constexpr CollectiveAlgorithm kUnnamedAlgorithm{UINT8_MAX};

/// Names and sentences stand in the rows (algorithm.h).
constexpr ListedNames<CollectiveAlgorithm> named_values(CollectiveAlgorithm /*any*/) {
  return {};
}
const std::vector<Named<CollectiveAlgorithm>>& listed_values(CollectiveAlgorithm any);

}  // namespace orrery::collective
