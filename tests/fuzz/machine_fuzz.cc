// SPDX-License-Identifier: Apache-2.0
/// Any YAML as a machine: what is accepted survives being written, and fits a number of devices
/// exactly or says why not.
#include "machine/machine.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::int64_t device_count(const orrery::machine::Machine& machine) {
  std::int64_t count = 1;
  for (const orrery::topology::NetworkDimension& dimension : machine.network) {
    count *= dimension.size;
  }
  return count;
}

}  // namespace

ORRERY_FUZZ(machine) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::yaml, [](const orrery::ConfigNode& node) {
        const auto machine = orrery::machine::parse_machine(node);
        if (!machine) {
          orrery::fuzz::hold_error(machine.error());
          return;
        }

        const auto again = orrery::machine::parse_machine(
            orrery::fuzz::own_node(orrery::machine::to_yaml(*machine)));
        orrery::fuzz::hold(again.has_value() && *again == *machine,
                           "a machine survives being written");
        for (const std::int64_t devices : {1, 8, 24, 1024}) {
          const auto sized = orrery::machine::with_devices(*machine, devices);
          if (sized) {
            orrery::fuzz::hold(device_count(*sized) == devices,
                               "a fitted machine has the devices asked for");
          } else {
            orrery::fuzz::hold_error(sized.error());
          }
        }
      });
}
