// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::cli {

struct ChakraExport {
  zoo::Model model;
  plan::Plan plan;
  std::optional<machine::Machine> machine;  ///< times of compute nodes; absent: 0, for a roofline
  std::string prefix;                       ///< PREFIX.<rank>.et, PREFIX.groups.json
  std::int64_t most_files = 4096;
  bool json = false;
};

/// Writes the traces of one step, into a folder that is made if need be, and returns what was
/// written, as a table or JSON. Mistakes: those of the plan against model and machine, of more
/// ranks than most_files, of files.
Result<std::string> export_chakra(const ChakraExport& what);

}  // namespace orrery::cli
