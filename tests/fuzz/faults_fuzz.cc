// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a faults file: changes in the order of time, or a reason.
#include <algorithm>

#include "machine/faults/faults.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(faults) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto plan = orrery::faults::parse_faults(text, "input");
  if (!plan) {
    orrery::fuzz::hold_error(plan.error());
    return 0;
  }
  orrery::faults::Places places{.ranks = 16,
                                .ranks_of_node = 4,
                                .compute = true,
                                .no_links = {},
                                .links = 8,
                                .links_named = {},
                                .links_of_rank = {},
                                .link_example = "leaf0--spine1"};
  places.links_named = [](const std::string& name) {
    return name == "all" ? std::vector<std::size_t>{0, 7} : std::vector<std::size_t>{};
  };
  places.links_of_rank = [](std::int64_t rank) {
    return std::vector<std::size_t>{static_cast<std::size_t>(rank) % 8};
  };
  const auto schedule = orrery::faults::schedule_of(*plan, places);
  if (!schedule) {
    orrery::fuzz::hold_error(schedule.error());
    return 0;
  }
  orrery::fuzz::hold(std::ranges::is_sorted(schedule->changes, {}, &orrery::faults::Change::at),
                     "changes come in the order of time");
  return 0;
}
