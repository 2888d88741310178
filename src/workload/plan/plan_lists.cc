// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan_lists.h"

#include <algorithm>

#include "base/reader.h"

namespace orrery::plan {

std::vector<std::string> list_items(std::string_view list) {
  std::vector<std::string> items;
  bool more = !list.empty();
  while (more) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    items.emplace_back(item.substr(0, item.find_last_not_of(' ') + 1));
    more = comma != std::string_view::npos;
    list.remove_prefix(more ? comma + 1 : list.size());
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
