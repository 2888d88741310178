// SPDX-License-Identifier: Apache-2.0
/// What tests of operators look for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workload/zoo/model.h"

namespace orrery::testing {

inline zoo::ModelOperator find(const std::vector<zoo::ModelOperator>& operators,
                               const std::string& name) {
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [&](const auto& op) { return op.name == name; });
  if (found == operators.end()) {
    ADD_FAILURE() << "no operator " << name;
    return {};
  }
  return *found;
}

inline std::vector<std::string> names(const std::vector<zoo::ModelOperator>& operators) {
  std::vector<std::string> result;
  result.reserve(operators.size());
  for (const zoo::ModelOperator& op : operators) {
    result.push_back(op.name);
  }
  return result;
}

}  // namespace orrery::testing
