// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "planner/full/search.h"

namespace orrery::testing {

/// A task with the global batch and the sequence fixed.
inline full::Task task(const std::string& model, const std::string& machine, std::int64_t devices,
                       std::int64_t batch, std::int64_t sequence) {
  full::Task task{.model = *zoo::load_model(model),
                  .machine = *machine::load_machine(machine),
                  .devices = devices,
                  .fixed = {}};
  task.fixed.plan.global_batch = batch;
  task.fixed.plan.sequence = sequence;
  task.fixed.places = {{"global_batch", "--batch"}, {"sequence", "--sequence"}};
  return task;
}

/// A task as the parameter of a test.
struct Setting {
  std::string model, machine;
  std::int64_t devices, batch, sequence;
};
inline full::Task task(const Setting& setting) {
  return task(setting.model, setting.machine, setting.devices, setting.batch, setting.sequence);
}

}  // namespace orrery::testing
