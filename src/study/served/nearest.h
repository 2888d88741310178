// SPDX-License-Identifier: Apache-2.0
/// Published runs of inference engines that are nearest to a served run.
#pragma once

#include <cstddef>
#include <vector>

#include "serving/serve.h"
#include "study/nearest_rows.h"

namespace orrery::served {

/// Returns the figures of the `most` runs of the shipped tables of kind serving, on devices of the
/// machine's sort, whose distance is least, the nearest first; none where no table has such
/// devices.
///
///   distance = |log2(parameters)| + |log2(devices)| + |log2(mean prompt)| + |log2(mean answer)|
///              of the row's over the run's, + 1 where the engine is of another framework
///
/// Every row is looked at; those that cannot be read or run are left out. Each is predicted as
/// `orrery validate` predicts it.
///
/// Ignores: rate and concurrency, data types, releases of the framework.
std::vector<study::NearestRow> nearest_rows(const zoo::Model& model, const serving::Run& run,
                                            const machine::Machine& machine, std::size_t most);

}  // namespace orrery::served
