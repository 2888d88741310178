// SPDX-License-Identifier: Apache-2.0
/// Unusual means are what a plan has that few users run: between plans that are as fast, the one
/// with fewer is easier to launch and to keep running.
///
/// In this order, from what is hardest to have:
///   hypothetical hardware   overlap_tensor tracked
///   states on the host      offload_optimizer
///   activations on the host offload_activations
///   both ends at once       schedule dualpipe
///   split backwards         the other schedules that do weight gradients later
///   uneven stages           stage_layers
///   odd chunks              a number of them that is no power of two
///   order of axes           another than tp-cp-dp-pp
#pragma once

#include <string_view>
#include <vector>

#include "workload/plan/plan.h"

namespace orrery::full {

struct UnusualMean {
  int rank = 0;  ///< in the order above
  std::string_view name;
};
std::vector<UnusualMean> unusual_means(const plan::Plan& plan);

/// Returns whether a is simpler than b: it has fewer unusual means, or as many, of which the first
/// that differ is easier to have.
bool is_simpler(const plan::Plan& a, const plan::Plan& b);

}  // namespace orrery::full
