// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan_lists.h"

#include <algorithm>
#include <utility>

#include "base/collect.h"
#include "base/reader.h"
#include "base/split.h"
#include "workload/plan/framework.h"
#include "workload/plan/layout.h"

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
  return or_mistakes(std::move(lengths), std::move(error));
}

Result<std::vector<std::int64_t>> stated_layers(const Plan& plan) {
  std::vector<std::int64_t> counts;
  if (plan.stage_layers.empty() || plan.stage_layers == "auto") {
    return counts;
  }
  for (std::string_view item : split_at(plan.stage_layers, ',')) {
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    const auto count = parse_integer(item);
    if (!count || *count < 0) {
      return fail(Error(Mistake{{},
                                "stage_layers",
                                plan.stage_layers,
                                "whole numbers of layers such as '12,13,13,10', or auto"}));
    }
    counts.push_back(*count);
  }
  return counts;
}

Result<void> check_texts(const Plan& plan) {
  Error error;
  collect(parse_order(plan), error);
  collect(stated_layers(plan), error);
  collect(documents_of(plan), error);
  if (!plan.framework.empty()) {  // else no file is looked for
    if (const auto known = framework_fields(plan.framework); !known) {
      error.add({{}, "framework", plan.framework, known.error().to_string()});
    }
  }
  for (const auto& [field, text] : {std::pair("recompute_modules", &plan.recompute_modules),
                                    {"unquantized_modules", &plan.unquantized_modules}}) {
    for (const std::string& name : list_items(*text)) {
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
        error.add({{}, field, name, "names of modules such as 'mlp,norm'"});
      }
    }
  }
  return or_mistakes(std::move(error));
}

}  // namespace orrery::plan
