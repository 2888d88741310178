// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/step.h"

#include "study/sweep/study.h"

namespace orrery::sweep {

Result<zoo::Model> read_model(const ConfigNode& node) {
  ConfigNode own = node;
  const ConfigNode* name = node.find(kModelName);
  const std::string text = name == nullptr ? "model" : name->text;
  std::erase_if(own.fields, [](const ConfigField& field) { return field.name == kModelName; });
  return zoo::parse_model(own, text);
}

Step read_step(Reader& read) {
  Step step;
  if (const ConfigNode* model = read.child("model", true)) {
    step.model = read.absorb(read_model(*model));
  }
  if (const ConfigNode* machine = read.child("machine", true)) {
    step.machine = read.absorb(machine::parse_machine(*machine));
  }
  if (const ConfigNode* plan = read.child("plan", false)) {
    step.plan = read.absorb(plan::parse_placed_plan(*plan));
  }
  step.devices = read.optional<std::int64_t>("devices", 0);
  read.require(step.devices >= 0, "devices", "a number of accelerators, or 0 for the plan's own");
  return step;
}

std::int64_t devices_in_parts(const machine::Machine& machine) {
  std::int64_t devices = 0;
  for (const machine::DeviceGroup& part : machine.parts) {
    devices += part.devices;
  }
  return devices;
}

}  // namespace orrery::sweep
