// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/framework.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "workload/plan/defaults.h"

namespace orrery::plan {
namespace {

/// Returns the numbers of "2024-12" or "v25.09.01"; empty when there is none or something else
/// between.
std::vector<std::int64_t> release_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  bool inside = false;
  for (const char c : text.substr(text.starts_with('v') ? 1 : 0)) {
    if (c >= '0' && c <= '9') {
      if (!inside) {
        numbers.push_back(0);
      }
      constexpr std::int64_t kMost = 1'000'000'000;
      numbers.back() = std::min(kMost, numbers.back() * 10 + (c - '0'));
      inside = true;
    } else if (c == '.' || c == '-') {
      inside = false;
    } else {
      return {};
    }
  }
  return numbers;
}

/// False: no such field. A value that does not parse is a mistake.
bool set_field(Plan& plan, const FrameworkField& field, Error& mistakes) {
  bool known = false;
  Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (name != field.name) {
      return;
    }
    known = true;
    using T = std::decay_t<decltype(plan.*member)>;
    if (auto value = parse_value<T>(field.value)) {
      plan.*member = std::move(*value);
    } else {
      mistakes.add({field.place, field.name, field.value, value.error()});
    }
  });
  return known;
}

/// Returns the year that a release is named after ("2024-12", "25.09"); 0: after none.
std::int64_t year_of(const std::vector<std::int64_t>& numbers) {
  constexpr std::int64_t kCentury = 2000;
  constexpr std::int64_t kShort = 17;  // the first year of this century that kFirstYear allows
  const std::int64_t first = numbers.empty() ? 0 : numbers.front();
  return first >= kFirstYear ? first : first >= kShort && first < 100 ? kCentury + first : 0;
}

struct Release {
  std::vector<std::int64_t> from;
  std::int64_t year = 0;
  std::vector<FrameworkField> fields;
};
struct File {
  std::string description;
  std::vector<FrameworkField> fields;
  std::vector<Release> releases;
};

std::vector<FrameworkField> read_plan(const ConfigNode* node, const std::set<std::string>& reasons,
                                      Error& mistakes) {
  std::vector<FrameworkField> fields;
  if (node == nullptr) {
    return fields;
  }
  Plan tried;
  for (const ConfigField& field : node->fields) {
    FrameworkField read{field.name, field.value.text, field.value.where()};
    if (field.value.kind != ConfigNode::Kind::scalar || !set_field(tried, read, mistakes)) {
      mistakes.add({read.place, field.value.path, field.name, "a plan field with a single value"});
    } else if (!reasons.contains(field.name)) {
      mistakes.add({read.place, "why." + field.name, "", "the source of " + field.name});
    }
    fields.push_back(std::move(read));
  }
  return fields;
}

Result<File> read_framework(const ConfigNode& node) {
  Reader read(node);
  Error mistakes;
  File file;
  read.required<std::string>("name");
  file.description = read.required<std::string>("description");
  std::set<std::string> reasons;
  if (const ConfigNode* why = read.child("why", false)) {
    for (const ConfigField& field : why->fields) {
      reasons.insert(field.name);
    }
  }
  file.fields = read_plan(read.child("plan", true), reasons, mistakes);
  for (const ConfigNode* item : read.take_items("releases", false)) {
    Reader release(*item);
    const std::string from = release.required<std::string>("from");
    const std::vector<std::int64_t> numbers = release_numbers(from);
    const auto year = release.optional("year", year_of(numbers));
    file.releases.push_back(
        {numbers, year, read_plan(release.child("plan", true), reasons, mistakes)});
    release.require(year >= kFirstYear, "year", "the year in which the release came out");
    const std::size_t count = file.releases.size();
    release.require(!file.releases.back().from.empty() &&
                        (count < 2 || file.releases[count - 2].from < file.releases.back().from),
                    "from", "a release behind the one before, as \"2025-06\"");
    collect(release.finish(true), mistakes);
  }
  File result = collect(read.finish(std::move(file)), mistakes);
  return or_mistakes(std::move(result), std::move(mistakes));
}

Result<File> load_framework(const std::string& name) {
  return find_config("frameworks", name)
      .and_then([](const std::string& path) { return load_config(path); })
      .and_then([](const ConfigNode& node) { return read_framework(node); });
}

}  // namespace

Result<std::vector<FrameworkField>> framework_fields(const std::string& framework,
                                                     std::int64_t as_of) {
  const std::size_t at = framework.find('@');
  const std::string name = framework.substr(0, at);
  const std::string release = at == std::string::npos ? "" : framework.substr(at + 1);
  const std::vector<std::int64_t> wanted = release_numbers(release);
  if (at != std::string::npos && wanted.empty()) {
    return fail(Error(Mistake{{}, {}, framework, "a release of numbers, as torchtitan@2024-12"}));
  }
  Result<File> file = load_framework(name);
  if (!file) {
    return fail(std::move(file.error()));
  }
  std::vector<FrameworkField> fields = std::move(file->fields);
  for (const Release& later : file->releases) {
    if (wanted.empty() ? as_of != 0 && as_of < later.year : wanted < later.from) {
      break;
    }
    for (const FrameworkField& field : later.fields) {
      std::erase_if(fields, [&](const FrameworkField& old) { return old.name == field.name; });
      fields.push_back(field);
    }
  }
  return fields;
}

Result<std::string> framework_description(const std::string& name) {
  return load_framework(name).map([](const File& file) { return file.description; });
}

void apply_framework(PlacedPlan& placed) {
  if (placed.plan.framework.empty()) {
    return;
  }
  const auto fields = framework_fields(placed.plan.framework, placed.plan.as_of);
  for (const FrameworkField& field : fields ? *fields : std::vector<FrameworkField>{}) {
    Error none;  // values parse: framework_fields() has tried them
    if (placed.places.emplace(field.name, "framework " + placed.plan.framework).second) {
      set_field(placed.plan, field, none);
    }
  }
}

}  // namespace orrery::plan
