// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "graph/workload.h"

namespace orrery::graph {

/// Mistakes in what the nodes of a template read and write: tensors and rows that are not there,
/// values that are read before they are written, and readers that nothing makes wait for the writer
/// (streams in order of issue alone are looked at).
std::vector<std::string> tensor_mistakes(const Workload& workload, const Template& t);

}  // namespace orrery::graph
