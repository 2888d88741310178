// SPDX-License-Identifier: Apache-2.0
/// Lists of a file: of a flood of mistakes the first ones are told, and how many more there are.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/collect.h"
#include "base/reader.h"

namespace orrery::spmd {

/// Returns what `one` makes of every item of the field.
template <class One>
auto read_list(Reader& read, std::string_view field, One one) {
  std::vector<typename std::invoke_result_t<One&, const ConfigNode&>::value_type> values;
  FileMistakes mistakes(read.node().file());
  for (const ConfigNode* item : read.take_items(field, true)) {
    if (auto value = one(*item)) {
      values.push_back(std::move(*value));
    } else {
      mistakes.add(std::move(value.error()));
    }
  }
  return read.absorb(or_mistakes(std::move(values), mistakes.take()));
}

}  // namespace orrery::spmd
