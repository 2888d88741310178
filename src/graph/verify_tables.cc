// SPDX-License-Identifier: Apache-2.0
#include "graph/verify_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace orrery::graph {
namespace {

class TableCheck {
 public:
  explicit TableCheck(const Workload& workload) : workload_(workload), ranks_(workload.ranks) {}

  std::vector<std::string> run() {
    if (ranks_ < 1) {
      return {fmt::format("the workload has {} ranks", ranks_)};
    }
    if (workload_.role_map.list.empty()) {
      roles_by_digits();
    } else {
      listed_roles();
    }
    for (const Role& role : workload_.roles) {
      require(role.program < workload_.programs.size(), "{}: has no program", role.name);
    }
    require(!workload_.phases.empty() && !workload_.streams.empty(),
            "the workload has no phases or no streams");
    for (const Group& group : workload_.groups) {
      require(*group.category < workload_.categories.size(),
              "group {}: counts as a category that is not there", group.name);
      check(group);
    }
    require(workload_.source != nullptr, "the workload has no source");
    return std::move(mistakes_);
  }

 private:
  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> sentence, Args&&... args) {
    if (!ok) {
      mistakes_.push_back(fmt::format(sentence, std::forward<Args>(args)...));
    }
  }

  void roles_by_digits() {
    const std::optional<std::int64_t> product = digits("the roles", workload_.role_map.digits);
    require(!product || *product == std::ssize(workload_.roles), "{} roles, but the ranks have {}",
            workload_.roles.size(), product.value_or(0));
  }

  void listed_roles() {
    const std::vector<std::int32_t>& list = workload_.role_map.list;
    const auto roles = std::ssize(workload_.roles);
    require(std::ssize(list) == ranks_, "the roles of {} ranks are listed, but there are {}",
            list.size(), ranks_);
    std::vector<bool> used(workload_.roles.size());
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      const bool exists = list[rank] >= 0 && list[rank] < roles;
      require(exists, "rank {} has role {}, but there are {} roles", rank, list[rank], roles);
      if (exists) {
        used[static_cast<std::size_t>(list[rank])] = true;
      }
    }
    for (std::size_t role = 0; role < used.size(); ++role) {
      require(used[role], "{}: is no rank's role", workload_.roles[role].name);
    }
  }

  /// Returns the numbers that the digits make, if they are digits of rank numbers: innermost first,
  /// apart from one another, and such that every rank has as many others that differ in them alone.
  std::optional<std::int64_t> digits(std::string_view whose, const std::vector<Digit>& digits) {
    std::int64_t below = 1;  // what the digits before this one distinguish
    std::int64_t product = 1;
    for (const Digit& digit : digits) {
      const auto [size, stride] = digit;
      const auto wrong = [&](std::string_view what) {
        mistakes_.push_back(
            fmt::format("{}: the digit of size {} and stride {} {}", whose, size, stride, what));
        return std::nullopt;
      };
      if (size < 1 || stride < 1) {
        return wrong("is none");
      }
      if (stride % below != 0) {
        return wrong("overlaps the one before it, or lies inside of it");
      }
      if (size > ranks_ / stride || ranks_ % (size * stride) != 0) {
        return wrong(fmt::format("does not divide the {} ranks", ranks_));
      }
      below = size * stride;
      product *= size;
    }
    return product;
  }

  void check(const Group& group) {
    const Members& members = group.members;
    const std::string whose = "group " + group.name;
    if (!members.by_digits()) {
      require(members.digits.empty() && members.only.empty(),
              "{}: has communicators by digits and as lists", whose);
      lists(whose, members);
    } else if (const auto product = digits(whose, members.digits)) {
      const std::vector<std::int64_t>& only = members.only;
      require(std::adjacent_find(only.begin(), only.end(), std::greater_equal<>()) == only.end(),
              "{}: the numbers that it is left to are not ascending", whose);
      for (const std::int64_t number : only) {
        require(number >= 0 && number < *product,
                "{}: is left to number {}, but its digits make {} numbers", whose, number,
                *product);
      }
    }
  }

  void lists(const std::string& whose, const Members& members) {
    std::vector<std::int32_t> list_of(static_cast<std::size_t>(ranks_), -1);
    for (std::size_t i = 0; i < members.lists.size(); ++i) {
      require(!members.lists[i].empty(), "{}: communicator {} has no ranks", whose, i);
      for (const std::int64_t rank : members.lists[i]) {
        if (rank < 0 || rank >= ranks_) {
          require(false, "{}: communicator {} holds rank {}, but there are {} ranks", whose, i,
                  rank, ranks_);
          continue;
        }
        std::int32_t& known = list_of[static_cast<std::size_t>(rank)];
        require(known < 0, "{}: rank {} is in communicators {} and {}", whose, rank, known, i);
        known = static_cast<std::int32_t>(i);
      }
    }
    require(!mistakes_.empty() || list_of == members.list_of,
            "{}: which communicator holds a rank is not what the communicators say", whose);
  }

  const Workload& workload_;
  std::int64_t ranks_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> table_mistakes(const Workload& workload) {
  return TableCheck(workload).run();
}

}  // namespace orrery::graph
