// SPDX-License-Identifier: Apache-2.0
/// Plan fields that are lists in one string.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

/// Returns {"mlp", "norm", "act"} for "mlp, norm act": items stand between commas or blanks; "" has
/// none.
std::vector<std::string> list_items(std::string_view list);

/// Returns whether holds(item) of any.
template <class Holds>
bool any_item(std::string_view list, const Holds& holds) {
  constexpr std::string_view kBetween = ", \t";
  if (list.find_first_of(kBetween) == std::string_view::npos) {  // most have one item, or none
    return !list.empty() && holds(list);
  }
  const std::vector<std::string> items = list_items(list);
  return std::any_of(items.begin(), items.end(), holds);
}

/// Returns the lengths of the documents packed into every sequence; none for one document. Their
/// attention masks are blocks on the diagonal: the work of attention is that of sum of length^2
/// instead of S^2. Mistakes: what is not a length of 1 or more. That they sum to S and that the
/// attention kernel skips what is masked is for check().
///
/// Context-parallel ranks are assumed to share that work evenly. MFU counts S^2 as the published
/// tables do, so packing raises it.
Result<std::vector<std::int64_t>> documents_of(const Plan& plan);

/// Returns "12,13" of stage_layers as numbers; none for "" and "auto". Mistakes: what is no whole
/// number.
Result<std::vector<std::int64_t>> stated_layers(const Plan& plan);

/// Mistakes of text fields that no model is needed to tell: order, stage_layers, documents, and
/// names of modules that are no words. Whether a model has them is for check().
Result<void> check_texts(const Plan& plan);

}  // namespace orrery::plan
