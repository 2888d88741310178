// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "graph/regular.h"

namespace orrery::chakra {
namespace {

/// Disjoint sets of numbers; the least number of a set stands for it.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) {
      i = parent_[i] = parent_[parent_[i]];
    }
    return i;
  }
  void unite(std::size_t a, std::size_t b) {
    const std::size_t one = find(a);
    const std::size_t other = find(b);
    parent_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<std::size_t> parent_;
};

/// Sets of groups that are one family but for shared ranks, each ascending, by their first.
std::vector<std::vector<std::uint32_t>> connected(const TraceSet& traces,
                                                  const std::vector<std::vector<GroupUse>>& uses) {
  std::vector<std::size_t> first_use;  // by program, behind the groups
  std::size_t count = traces.groups.size();
  for (const std::vector<GroupUse>& of_program : uses) {
    first_use.push_back(count);
    count += of_program.size();
  }
  Sets sets(count);
  std::set<std::uint32_t> used;
  for (std::int64_t rank = 0; rank < traces.ranks(); ++rank) {
    const std::size_t program = traces.program_of[static_cast<std::size_t>(rank)];
    for (std::size_t u = 0; u < uses[program].size(); ++u) {
      if (uses[program][u].slot != kWorldSlot) {
        const std::uint32_t group = traces.group(rank, uses[program][u].slot);
        sets.unite(group, first_use[program] + u);
        used.insert(group);
      }
    }
  }
  std::map<std::size_t, std::vector<std::uint32_t>> by_set;
  for (const std::uint32_t group : used) {
    by_set[sets.find(group)].push_back(group);
  }
  std::vector<std::vector<std::uint32_t>> found;
  found.reserve(by_set.size());
  for (auto& [first, groups] : by_set) {
    found.push_back(std::move(groups));
  }
  return found;
}

graph::Members some_dimensions(std::uint32_t wanted, const std::vector<std::int64_t>& dimensions) {
  graph::Members members;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    if ((wanted >> d & 1U) != 0 && dimensions[d] > 1) {
      members.digits.push_back({dimensions[d], stride});
    }
    stride *= dimensions[d];
  }
  return members;
}

graph::Members members_of(const std::vector<std::vector<std::int64_t>>& groups,
                          const std::vector<graph::Digit>& roles, std::int64_t ranks) {
  if (std::all_of(groups.begin(), groups.end(),
                  [](const auto& list) { return list.size() == 1; })) {
    return {};
  }
  auto members = graph::members_by_digits(groups, roles, ranks);
  return members ? std::move(*members) : graph::Members::listed(groups, ranks);
}

}  // namespace

Families::Families(const TraceSet& traces, const std::vector<std::vector<GroupUse>>& uses,
                   const std::vector<std::int64_t>& dimensions)
    : traces_(traces), of_group_(traces.groups.size()) {
  for (const std::vector<GroupUse>& of_program : uses) {
    for (const GroupUse& use : of_program) {
      add_world(use, dimensions);
    }
  }
  for (const std::vector<std::uint32_t>& groups : connected(traces, uses)) {
    add_groups(groups);
  }
}

void Families::add_world(const GroupUse& use, const std::vector<std::int64_t>& dimensions) {
  if (use.slot != kWorldSlot || !of_world_.try_emplace(use.dimensions, families_.size()).second) {
    return;
  }
  if (use.dimensions == GroupUse::kAllDimensions) {
    families_.push_back({"world", {}, some_dimensions(1, {traces_.ranks()})});
    taken_.emplace_back(static_cast<std::size_t>(traces_.ranks()), true);
    return;
  }
  std::string numbers;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    if ((use.dimensions >> d & 1U) != 0) {
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", d);
    }
  }
  const bool one = numbers.find(',') == std::string::npos;
  families_.push_back({(one ? "dimension " : "dimensions ") + numbers,
                       {},
                       some_dimensions(use.dimensions, dimensions)});
  taken_.emplace_back(static_cast<std::size_t>(traces_.ranks()), true);
}

std::vector<std::int64_t> Families::sorted_ranks(std::uint32_t group) const {
  std::vector<std::int64_t> ranks = traces_.groups[group].ranks;
  if (ranks.empty()) {  // all
    ranks.resize(static_cast<std::size_t>(traces_.ranks()));
    std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// Returns the first family of [first, end) that has none of the ranks; end when all have.
std::size_t Families::first_free(std::size_t first, const std::vector<std::int64_t>& ranks) const {
  const auto free = std::find_if(
      taken_.begin() + static_cast<std::ptrdiff_t>(first), taken_.end(), [&](const auto& by_rank) {
        return std::none_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
          return by_rank[static_cast<std::size_t>(rank)];
        });
      });
  return static_cast<std::size_t>(free - taken_.begin());
}

void Families::add_groups(const std::vector<std::uint32_t>& groups) {
  const std::size_t first = families_.size();
  for (const std::uint32_t group : groups) {
    std::vector<std::int64_t> ranks = sorted_ranks(group);
    const std::size_t family = first_free(first, ranks);
    if (family == families_.size()) {
      families_.push_back({"group " + traces_.groups[group].name, {}, {}});
      taken_.emplace_back(static_cast<std::size_t>(traces_.ranks()));
    }
    add_to(family, group, std::move(ranks));
  }
  if (families_.size() == first + 1) {
    join_alike(first);
  }
}

void Families::add_to(std::size_t family, std::uint32_t group, std::vector<std::int64_t> ranks) {
  for (const std::int64_t rank : ranks) {
    taken_[family][static_cast<std::size_t>(rank)] = true;
  }
  of_group_[group] = family;
  families_[family].groups.push_back(std::move(ranks));
}

/// The last family becomes part of the first one before it that has the same digits on other ranks.
void Families::join_alike(std::size_t last) {
  const std::vector<std::vector<std::int64_t>> groups = families_[last].groups;
  families_[last].members = members_of(groups, {}, traces_.ranks());
  if (!families_[last].members.by_digits()) {
    families_[last].members = {};
    return;
  }
  std::vector<std::int64_t> ranks;
  for (const std::vector<std::int64_t>& group : groups) {
    ranks.insert(ranks.end(), group.begin(), group.end());
  }
  for (std::size_t other = 0; other < last; ++other) {
    const Family& family = families_[other];
    if (family.groups.empty() || family.members != families_[last].members ||
        first_free(other, ranks) != other) {
      continue;
    }
    std::replace(of_group_.begin(), of_group_.end(), last, other);
    families_[other].groups.insert(families_[other].groups.end(), groups.begin(), groups.end());
    for (const std::int64_t rank : ranks) {
      taken_[other][static_cast<std::size_t>(rank)] = true;
    }
    families_.pop_back();
    taken_.pop_back();
    return;
  }
}

Families::Place Families::place(std::int64_t rank, const GroupUse& use) const {
  if (use.slot == kWorldSlot) {
    const std::size_t family = of_world_.at(use.dimensions);
    return {family, families_[family].members.size()};
  }
  const std::uint32_t group = traces_.group(rank, use.slot);
  const auto listed = std::ssize(traces_.groups[group].ranks);
  return {of_group_[group], listed == 0 ? traces_.ranks() : listed};
}

std::vector<Families::Family> Families::take(const std::vector<graph::Digit>& roles) {
  for (Family& family : families_) {
    if (!family.groups.empty()) {
      family.members = members_of(family.groups, roles, traces_.ranks());
    }
  }
  return std::move(families_);
}

}  // namespace orrery::chakra
