// SPDX-License-Identifier: Apache-2.0
#include "machine/read_origins.h"

#include <algorithm>

#include "base/lists.h"
#include "machine/describe.h"

namespace orrery::machine {

/// An origin that names no field is one that was meant for another.
void read_origins(Reader& read, Machine& machine) {
  const ConfigNode* node = read.child("origins", false);
  if (node == nullptr) {
    return;
  }
  Reader origins(*node);
  for (const ConfigField& field : node->fields) {
    machine.origins[field.name] = origins.required<std::string>(field.name);
  }
  if (read.ok()) {
    std::vector<std::string> fields =
        mapped(fields_of(machine), [](const auto& entry) { return entry.first; });
    for (const auto& [prefix, origin] : machine.origins) {
      const bool known = std::any_of(fields.begin(), fields.end(), [&](const std::string& name) {
        return name == prefix || name.starts_with(prefix + ".");
      });
      if (!known) {
        origins.reject(prefix,
                       "the dotted name of a field or a part of it" + did_you_mean(prefix, fields));
      }
    }
  }
  read.absorb(origins.finish(0));
}

}  // namespace orrery::machine
