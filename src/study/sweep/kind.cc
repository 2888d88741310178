// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/kind.h"

namespace orrery::sweep {

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const KindEntry& kind : kKinds) {
    names.emplace_back(kind.name);
  }
  return names;
}

Outcome refused(std::size_t columns, const Error& why) {
  return {std::vector<Cell>(columns), why.to_string()};
}

}  // namespace orrery::sweep
