// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/kind.h"

#include "base/lists.h"

namespace orrery::sweep {

std::vector<std::string> kind_names() {
  return mapped<std::string>(kKinds, &KindEntry::name);
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
