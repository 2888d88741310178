// SPDX-License-Identifier: Apache-2.0
/// Any YAML as a machine: what is accepted is written as YAML that reads back to the same YAML.
#include "machine/machine.h"
#include "tests/fuzz/fuzz.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace orrery;
  return fuzz::with_node(bytes, size, ConfigSyntax::yaml, [](const ConfigNode& node) {
    const auto machine = parse_machine(node);
    if (!machine) {
      fuzz::hold_error(machine.error());
      return;
    }
    const std::string text = to_yaml(*machine);
    const auto again = parse_machine(fuzz::own_node(text));
    fuzz::hold(again.has_value() && to_yaml(*again) == text, "a machine survives being written");
    for (const std::int64_t devices : {1, 8, 24, 1024}) {
      const auto sized = with_devices(*machine, devices);
      fuzz::hold(sized.has_value() || !sized.error().empty(), "a refused size says why");
    }
  });
}
