// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan_lists.h"

#include <algorithm>

#include "base/reader.h"
#include "base/split.h"

namespace orrery::plan {

std::vector<std::string> list_items(std::string_view list) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string> items;
  if (list.empty()) {
    return items;
  }
  for (std::string_view part : split_at(list, ',')) {
    do {
      part.remove_prefix(std::min(part.find_first_not_of(kBlank), part.size()));
      const std::size_t length = std::min(part.find_first_of(kBlank), part.size());
      items.emplace_back(part.substr(0, length));
      part.remove_prefix(length);
    } while (part.find_first_not_of(kBlank) != std::string_view::npos);
  }
  return items;
}

Result<std::vector<std::int64_t>> documents_of(const Plan& plan) {
  std::vector<std::int64_t> lengths;
  Error error;
  for (const std::string& item : list_items(plan.documents)) {
    const auto length = parse_integer(item);
    if (!length || *length < 1) {
      error.add({{}, "documents", item, "a length in tokens, as in '4096,2048,2048'"});
    }
    lengths.push_back(length.value_or(0));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return lengths;
}

}  // namespace orrery::plan
