// SPDX-License-Identifier: Apache-2.0
#include "graph/source.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace orrery::graph {
namespace {

TEST(InstanceLists, GiveEveryRoleItsListAndThenNothing) {
  const InstanceLists lists({{{.template_index = 2}, {.template_index = 0}}, {}});
  const std::unique_ptr<Source> run = lists.restart();
  EXPECT_EQ(run->list()->length(0), 2);
  EXPECT_EQ(run->list()->length(1), 0);
  const Next first = run->next(0, 0, 0_s);
  EXPECT_EQ(first.kind, Next::Kind::issue);
  EXPECT_EQ(first.instance.template_index, 2);
  EXPECT_EQ(run->next(0, 1, 1_s).instance.template_index, 0);
  EXPECT_EQ(run->next(0, 2, 1_s).kind, Next::Kind::done);
  EXPECT_EQ(run->next(1, 0, 0_s).kind, Next::Kind::done);
  EXPECT_FALSE(run->listens());
}

/// Describes a role's list: so many instances before a steady part, its pattern, how often it
/// comes, instances after it.
struct Part {
  std::int64_t before = 0;
  std::int64_t length = 1;
  std::int64_t times = 0;
  std::int64_t after = 0;
  std::int64_t microbatches = 1;  ///< of one period
  bool steady = true;             ///< whether the list says that it has a period

  std::int64_t first_after() const { return before + length * times; }
};

class SteadyList final : public IssueList {
 public:
  explicit SteadyList(std::vector<Part> parts) : parts_(std::move(parts)) {}
  std::unique_ptr<Source> restart() const override { return std::make_unique<SteadyList>(*this); }
  std::int64_t length(int role) const override {
    return part(role).first_after() + part(role).after;
  }
  /// Templates 0, 1 ... of the steady part; the others have numbers of their own.
  Instance at(int role, std::int64_t index) const override {
    const Part& p = part(role);
    EXPECT_TRUE(index >= 0 && index < length(role)) << index << " of " << length(role);
    if (index < p.before || index >= p.first_after()) {
      return {.template_index = static_cast<int>(p.length + index)};
    }
    const std::int64_t i = index - p.before;
    return {.template_index = static_cast<int>(i % p.length),
            .chunk = 0,
            .microbatch = i / p.length * p.microbatches};
  }
  std::optional<Period> period(int role) const override {
    const Part& p = part(role);
    return p.steady ? std::optional(Period{.first = p.before,
                                           .end = p.first_after(),
                                           .length = p.length,
                                           .microbatches = p.microbatches})
                    : std::nullopt;
  }

 private:
  const Part& part(int role) const { return parts_[static_cast<std::size_t>(role)]; }

  std::vector<Part> parts_;
};

struct Visit {
  Instance instance;
  std::int64_t times = 0;
};

std::vector<Visit> visits(const Excerpt& excerpt, int role) {
  std::vector<Visit> all;
  excerpt.for_each(role, [&](const Instance& instance, std::int64_t times) {
    all.push_back({instance, times});
  });
  return all;
}

TEST(Excerpt, LeavesOutTheSteadyMiddleOfEveryRole) {
  // 5 and 3 periods, 2 kept: one left out of both. Role 0: 1 + 4 * 2 + 1 instances, role 1: 2 * 3.
  const SteadyList list({{.before = 1, .length = 2, .times = 5, .after = 1},
                         {.before = 0, .length = 3, .times = 3, .after = 0}});
  const Excerpt excerpt(list, 2, 2);
  EXPECT_EQ(excerpt.left_out(), 1);
  EXPECT_EQ(visits(excerpt, 0).size(), 10);
  const std::vector<Visit> role = visits(excerpt, 1);
  ASSERT_EQ(role.size(), 6);
  EXPECT_EQ(role[2].times, 1);
  EXPECT_EQ(role[3].times, 2);  // of the last kept period, for the one left out
  EXPECT_EQ(role[5].instance.microbatch, 1);
}

TEST(Excerpt, LeavesNothingOutWhereRolesAreNotAlike) {
  const Part steady{.before = 1, .length = 2, .times = 9, .after = 1};
  Part other = steady;
  other.steady = false;
  EXPECT_EQ(Excerpt(SteadyList({steady, other}), 2, 1).left_out(), 0);
  EXPECT_EQ(Excerpt(SteadyList({other, steady}), 2, 1).left_out(), 0);
  other = steady;
  other.microbatches = 2;
  EXPECT_EQ(Excerpt(SteadyList({steady, other, steady}), 3, 1).left_out(), 0);
  EXPECT_EQ(Excerpt(SteadyList({steady, steady}), 2, 1).left_out(), 8);
}

RC_GTEST_PROP(Excerpt, CountsEveryInstanceOfTheWholeList, ()) {
  const auto below = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(0, most); };
  std::vector<Part> parts(static_cast<std::size_t>(1 + below(4)));
  for (Part& part : parts) {
    part = {.before = below(4),
            .length = 1 + below(3),
            .times = below(12),
            .after = below(3),
            .microbatches = 2};
  }
  const std::int64_t kept = 1 + below(3);
  const SteadyList list(parts);
  const Excerpt excerpt(list, parts.size(), kept);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto role = static_cast<int>(r);
    std::map<int, std::int64_t> whole;  // instances by template
    for (std::int64_t i = 0; i < list.length(role); ++i) {
      ++whole[list.at(role, i).template_index];
    }
    std::map<int, std::int64_t> counted;
    const std::vector<Visit> seen = visits(excerpt, role);
    for (const Visit& visit : seen) {
      counted[visit.instance.template_index] += visit.times;
    }
    RC_ASSERT(counted == whole);
    RC_ASSERT(std::ssize(seen) == list.length(role) - excerpt.left_out() * parts[r].length);
    RC_ASSERT(excerpt.left_out() == 0 || parts[r].times - excerpt.left_out() >= kept);
  }
}

RC_GTEST_PROP(Excerpt, KeepsTheOrderAndBothEndsOfTheList, ()) {
  const Part part{.before = 2,
                  .length = *rc::gen::inRange<std::int64_t>(1, 4),
                  .times = *rc::gen::inRange<std::int64_t>(3, 20),
                  .after = 2};
  const SteadyList list({part});
  const std::vector<Visit> seen = visits(Excerpt(list, 1, 2), 0);
  const auto size = static_cast<std::int64_t>(seen.size());
  RC_ASSERT(size == 2 + 2 * part.length + 2);
  for (std::int64_t i = 0; i < size; ++i) {
    const bool begins = i < 2 + 2 * part.length;
    const std::int64_t number = begins ? i : list.length(0) - size + i;
    RC_ASSERT(seen[static_cast<std::size_t>(i)].instance == list.at(0, number));
  }
}

}  // namespace
}  // namespace orrery::graph
