// SPDX-License-Identifier: Apache-2.0
/// Reads a machine file with the installed library.
#include <iostream>

#include "base/config_node.h"
#include "machine/machine.h"

int main(int count, char** arguments) {
  if (count != 2) {
    return 2;
  }
  const auto machine = orrery::machine::load_machine(arguments[1]);
  if (!machine) {
    std::cerr << machine.error().to_string() << '\n';
    return 1;
  }
  std::cout << machine->name << ": " << machine->network.size() << " network dimensions\n";
  return machine->name == "dgx-a100-80g" ? 0 : 1;
}
