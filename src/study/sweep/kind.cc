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
  return {std::vector<Cell>(columns), without_places(why).to_string()};
}

Error without_places(Error mistakes) {
  for (Mistake& mistake : mistakes.mistakes) {
    if (!mistake.field.empty() && !mistake.where.starts_with("--")) {
      mistake.where.clear();
    }
  }
  return mistakes;
}

}  // namespace orrery::sweep
