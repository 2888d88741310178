// SPDX-License-Identifier: Apache-2.0
#include "machine/dimensions_only.h"

#include <fmt/format.h>

namespace orrery::machine {

Result<void> check_dimensions_only(const Machine& machine, std::string_view who) {
  if (!machine.wires.graph) {
    return {};
  }
  return fail(Error(Mistake{
      {},
      "topology",
      machine.wires.spec,
      fmt::format("none: {} knows a machine's dimensions only, and the links that ways share "
                  "would be free; `orrery simulate` knows them",
                  who)}));
}

}  // namespace orrery::machine
