// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan_key.h"

#include <gtest/gtest.h>

namespace orrery::plan {
namespace {

using WithoutOrder = AllFieldsBut<&Plan::order, &Plan::zero>;
using Degrees = FieldsAlone<&Plan::tp, &Plan::stage_layers>;

/// Returns how often a table makes a value for these plans, one after the other.
template <class Fields, std::size_t kMost = 100>
int made(std::initializer_list<Plan> plans) {
  PlanTable<Fields, int, kMost> table;
  int count = 0;
  for (const Plan& plan : plans) {
    table.get(plan, [&] { return ++count; });
  }
  return count;
}

TEST(PlanKey, EveryFieldButThoseLeftOutMakesAnother) {
  Plan::fields([&](std::string_view name, auto member, std::string_view) {
    Plan other;
    auto& value = other.*member;
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, std::string>) {
      value += "x";
    } else if constexpr (requires { value.value(); }) {
      value += std::remove_reference_t<decltype(value)>(1);
    } else {
      value = static_cast<std::remove_reference_t<decltype(value)>>(static_cast<int>(value) ^ 1);
    }
    const bool left_out = name == "order" || name == "zero";
    EXPECT_EQ(made<WithoutOrder>({Plan{}, other}), left_out ? 1 : 2) << name;
    EXPECT_EQ(made<AllFieldsBut<>>({Plan{}, other}), 2) << name;
    EXPECT_EQ(made<Degrees>({Plan{}, other}), name == "tp" || name == "stage_layers" ? 2 : 1)
        << name;
    EXPECT_NE(PlanHash()(Plan{}), PlanHash()(other)) << name;
  });
}

TEST(PlanKey, EqualNumbersAreOneKey) {
  Plan negative;
  negative.moe_capacity = -0.0;
  EXPECT_EQ(made<AllFieldsBut<>>({Plan{}, negative}), 1);
}

TEST(PlanTable, FindsWhatItMadeWhateverWasAskedBetween) {
  const Plan one{.tp = 2};
  const Plan two{.tp = 4};
  EXPECT_EQ(made<Degrees>({one, two, one, two, two}), 2);
  // With room for one value each other plan's takes its place.
  EXPECT_EQ((made<Degrees, 1>({one, one, two, one, two, two})), 4);
}

}  // namespace
}  // namespace orrery::plan
