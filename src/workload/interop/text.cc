// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/text.h"

#include <algorithm>

#include "base/reader.h"
#include "machine/machine.h"
#include "workload/plan/plan_lists.h"

namespace orrery::interop {

Result<void> check_degrees(const plan::Plan& plan) {
  if (auto texts = plan::check_texts(plan); !texts) {
    return texts;
  }
  Error error;
  for (const auto& [name, member] :
       {std::pair{"tp", &plan::Plan::tp}, std::pair{"pp", &plan::Plan::pp},
        std::pair{"dp", &plan::Plan::dp}, std::pair{"cp", &plan::Plan::cp},
        std::pair{"ep", &plan::Plan::ep}, std::pair{"chunks", &plan::Plan::chunks},
        std::pair{"microbatch", &plan::Plan::microbatch},
        std::pair{"cp_a2a", &plan::Plan::cp_a2a}}) {
    if (plan.*member < 1 || plan.*member > kMostDegree) {
      error.add({{}, name, std::to_string(plan.*member), "1 to " + std::to_string(kMostDegree)});
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const Bytes devices = Bytes(plan.tp) * plan.cp * plan.pp * plan.dp;  // saturates
  if (devices.value() > machine::kMostDevices) {
    return fail(Error(Mistake{{}, "tp x cp x pp x dp", {}, "at most 2^24 devices"}));
  }
  const std::int64_t together = plan.dp * plan.microbatch;
  if (plan.global_batch < 1 || plan.global_batch % together != 0) {
    return fail(Error(Mistake{{},
                              "global_batch",
                              std::to_string(plan.global_batch),
                              "a multiple of dp x microbatch = " + std::to_string(together)}));
  }
  return {};
}

std::vector<std::int64_t> number_list(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    numbers.push_back(parse_integer(text.substr(0, comma)).value_or(0));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

}  // namespace orrery::interop
