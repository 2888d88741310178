// SPDX-License-Identifier: Apache-2.0
/// Random plans, each within what one format states.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "workload/interop/interop.h"

namespace orrery::testing {

template <class T>
T one_of(std::vector<T> values) {
  return *rc::gen::elementOf(std::move(values));
}
inline bool coin() {
  return *rc::gen::arbitrary<bool>();
}

/// Degrees, batch and data types that every format has.
inline plan::Plan any_degrees() {
  plan::Plan plan;
  plan.tp = one_of<std::int64_t>({1, 2, 4, 8});
  plan.pp = one_of<std::int64_t>({1, 2, 4});
  plan.dp = one_of<std::int64_t>({1, 2, 6});
  plan.microbatch = one_of<std::int64_t>({1, 2, 3});
  plan.global_batch = plan.dp * plan.microbatch * *rc::gen::inRange<std::int64_t>(1, 9);
  return plan;
}

/// The words of a launch line without its launcher, as a user would paste it.
inline std::vector<std::string> words_of(const std::string& text) {
  const auto line = interop::launch_words(text, "launch.sh");
  RC_ASSERT(line.has_value());
  return line->words;
}

}  // namespace orrery::testing
