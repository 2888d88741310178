// SPDX-License-Identifier: Apache-2.0
/// An explanation (study/explain.h) in the forms in which people and programs read it.
#pragma once

#include <cstddef>
#include <string>

#include "study/explain.h"

namespace orrery::report {

/// Critical path by category and by name (`items` of them), what bounds its kernels, sensitivities
/// and the next bottleneck, in at most 100 columns.
std::string explanation_table(const study::Explanation& explanation, std::size_t items);

/// One JSON object: model, machine, devices, step_time_s, interval80 and trust (trust.h); path:
/// {kinds_s, kernels_s (by bound), categories and items: [{kind, name, time_s, share, count}]};
/// sensitivity: [{resource, kind, change_of_resource, step_time_s, change, elasticity, anomaly}],
/// strongest first; next_bottleneck: {resource, factor, next, step_time_s} or null; plan. Of what
/// comes from no plan: name instead of model, and no plan.
std::string explanation_json(const study::Explanation& explanation);

}  // namespace orrery::report
