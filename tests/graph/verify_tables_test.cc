// SPDX-License-Identifier: Apache-2.0
#include "graph/verify_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipelines.h"

namespace orrery::graph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::HasSubstr;

TEST(Verify, RefusesTemplateIndicesOutOfRange) {
  Workload workload = pipeline({{compute_node(1)}});
  workload.source = in_order(1, 2);
  EXPECT_THAT(mistakes_of(workload), HasSubstr("instance 1 has a template index out of range"));
}

TEST(Verify, RefusesRolesThatDoNotMatchTheRanks) {
  Workload workload = pipeline({{compute_node(1)}, {compute_node(1)}});
  workload.role_map.digits = {{3, 1}};
  EXPECT_THAT(mistakes_of(workload), HasSubstr("does not divide the 2 ranks"));
  workload.role_map.digits = {{1, 1}, {1, 2}};
  EXPECT_EQ(mistakes_of(workload), "2 roles, but the ranks have 1");
  workload.role_map.digits = {};
  EXPECT_EQ(mistakes_of(workload), "2 roles, but the ranks have 1");
}

TEST(Verify, RefusesListedRolesThatAreNotThere) {
  Workload workload = pipeline({{compute_node(1)}, {compute_node(1)}});
  const auto mistake = [&](std::vector<std::int32_t> list) {
    workload.role_map = {.digits = {}, .list = std::move(list)};
    return mistakes_of(workload);
  };
  EXPECT_EQ(mistake({1, 0}), "");
  EXPECT_EQ(mistake({0, 1, 1}), "the roles of 3 ranks are listed, but there are 2");
  EXPECT_EQ(mistake({0, 0}), "stage 1: is no rank's role");
  EXPECT_THAT(mistake({0, 2}), HasSubstr("rank 1 has role 2, but there are 2 roles"));
  EXPECT_THAT(mistake({-1, 1}), HasSubstr("rank 0 has role -1, but there are 2 roles"));
}

/// Returns the mistakes of four ranks that do nothing, the group "stages" of which has these
/// members.
std::string mistakes_of_group(Members members) {
  Workload workload = pipeline({{}, {}, {}, {}});
  workload.groups[*kStages].members = std::move(members);
  return mistakes_of(workload);
}

TEST(Verify, RefusesDigitsThatAreNotOfTheRanks) {
  EXPECT_EQ(mistakes_of_group(by_digits({{2, 1}, {2, 2}})), "");
  EXPECT_EQ(mistakes_of_group(by_digits({{0, 1}})),
            "group stages: the digit of size 0 and stride 1 is none");
  EXPECT_EQ(mistakes_of_group(by_digits({{2, -1}})),
            "group stages: the digit of size 2 and stride -1 is none");
  // 2 x 4 numbers of four ranks; groups of three and a rank left over.
  EXPECT_EQ(mistakes_of_group(by_digits({{2, 1}, {4, 2}})),
            "group stages: the digit of size 4 and stride 2 does not divide the 4 ranks");
  EXPECT_EQ(mistakes_of_group(by_digits({{3, 1}})),
            "group stages: the digit of size 3 and stride 1 does not divide the 4 ranks");
  // The second distinguishes ranks that the first has told apart already.
  EXPECT_EQ(mistakes_of_group(by_digits({{4, 1}, {2, 2}})),
            "group stages: the digit of size 2 and stride 2 overlaps the one before it, or "
            "lies inside of it");
  EXPECT_EQ(
      mistakes_of_group(by_digits({{std::int64_t{1} << 62, 4}})),
      "group stages: the digit of size 4611686018427387904 and stride 4 does not divide the 4 "
      "ranks");
}

TEST(Verify, RefusesMembersBeyondTheDigitsNumbers) {
  EXPECT_EQ(mistakes_of_group(by_digits({{4, 1}}, {1, 3})), "");
  EXPECT_EQ(mistakes_of_group(by_digits({{4, 1}}, {1, 4})),
            "group stages: is left to number 4, but its digits make 4 numbers");
  EXPECT_EQ(mistakes_of_group(by_digits({{4, 1}}, {3, 1})),
            "group stages: the numbers that it is left to are not ascending");
  EXPECT_EQ(mistakes_of_group(by_digits({{4, 1}}, {1, 1})),
            "group stages: the numbers that it is left to are not ascending");
}

TEST(Verify, RefusesListedCommunicatorsThatShareRanksOrHoldNone) {
  const auto mistake = [](std::vector<std::vector<std::int64_t>> lists,
                          std::vector<std::int32_t> list_of) {
    return mistakes_of_group(
        {.digits = {}, .only = {}, .lists = std::move(lists), .list_of = std::move(list_of)});
  };
  EXPECT_EQ(mistake({{2, 0}, {1}}, {0, 1, 0, -1}), "");
  EXPECT_EQ(mistake({{0, 1}, {1, 2}}, {0, 1, 1, -1}),
            "group stages: rank 1 is in communicators 0 and 1");
  EXPECT_EQ(mistake({{0, 4}}, {0, -1, -1, -1}),
            "group stages: communicator 0 holds rank 4, but there are 4 ranks");
  EXPECT_EQ(mistake({{0, -1}}, {0, -1, -1, -1}),
            "group stages: communicator 0 holds rank -1, but there are 4 ranks");
  EXPECT_EQ(mistake({{0, 1}, {}}, {0, 0, -1, -1}), "group stages: communicator 1 has no ranks");
  EXPECT_EQ(mistake({{0, 1}}, {0, 0, 0, -1}),
            "group stages: which communicator holds a rank is not what the communicators say");
  EXPECT_EQ(mistake({{0, 1}}, {0, 0}),
            "group stages: which communicator holds a rank is not what the communicators say");
}

TEST(Verify, RefusesTablesThatDoNotFit) {
  const auto mistake = [](const auto& change) {
    Workload workload = pipeline({{compute_node(1)}, {compute_node(1)}});
    change(workload);
    return mistakes_of(workload);
  };
  EXPECT_THAT(mistake([](Workload& workload) { workload.roles[1].program = 2; }),
              HasSubstr("stage 1: has no program"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.phases.clear(); }),
              HasSubstr("no phases or no streams"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.streams.clear(); }),
              HasSubstr("no phases or no streams"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.groups[0].category = {}; }),
              HasSubstr("group alone: counts as a category that is not there"));
  EXPECT_THAT(mistake([](Workload& workload) { workload.source = nullptr; }),
              HasSubstr("the workload has no source"));
}

/// A stream of work that nobody knows beforehand.
class Surprise final : public Source {
 public:
  std::unique_ptr<Source> restart() const override { return std::make_unique<Surprise>(); }
  Next next(int, std::int64_t, Time) override { return Next::done(); }
};

TEST(Verify, LooksAtNodesOnlyWhereTheSourceIsNoList) {
  Workload workload = pipeline({{send(kForward, 1)}, {compute_node(1)}});
  workload.source = std::make_shared<Surprise>();
  EXPECT_EQ(mistakes_of(workload), "");
  workload.programs[0].templates[0].nodes.push_back(compute_node(1, {5}));
  EXPECT_NE(mistakes_of(workload), "");
}

/// Microbatch after microbatch of template 0; the one before the last may be another template.
class Steady final : public IssueList {
 public:
  Steady(std::int64_t length, bool odd) : length_(length), odd_(odd) {}
  std::unique_ptr<Source> restart() const override { return std::make_unique<Steady>(*this); }
  Instance at(int role, std::int64_t index) const override {
    const bool other = odd_ && role == 1 && index == length_ - 2;
    return {.template_index = other ? 1 : 0, .chunk = 0, .microbatch = index};
  }
  std::int64_t length(int) const override { return length_; }
  std::optional<Period> period(int) const override {
    return Period{.first = 0, .end = length_ - 2, .length = 1, .microbatches = 1};
  }

 private:
  std::int64_t length_;
  bool odd_;
};

TEST(Verify, FindsMistakesBehindTheSteadyPart) {
  Workload workload = pipeline({{send(kForward, 1)}, {receive(kForward, -1)}});
  workload.programs[1].templates.push_back({"other", {receive(kForward, -1, 32_B)}});
  workload.source = std::make_shared<Steady>(1'000'000'000, false);
  EXPECT_EQ(mistakes_of(workload), "");
  workload.source = std::make_shared<Steady>(1'000'000'000, true);
  EXPECT_THAT(mistakes_of(workload), HasSubstr("has 64 bytes, its receive 32"));
}

// ---- Statistics.

TEST(Statistics, CountEveryInstance) {
  Workload workload = pipeline({{compute_node(3), compute_node(4)}});
  workload.programs[0].templates.push_back({"second", {compute_node(5)}});
  workload.source = in_order(1, 2);
  const WorkloadStatistics total = statistics(workload);
  EXPECT_EQ(total.instances, 2);
  EXPECT_EQ(total.nodes, 3);
  EXPECT_EQ(total.flops, Flops(12));
}

TEST(Statistics, CountEveryRoleOfASharedProgram) {
  // Two roles of 10^6 instances of two nodes, 7 FLOP.
  Workload workload = pipeline({{compute_node(3), compute_node(4)}, {}});
  workload.roles[1].program = 0;
  workload.source = std::make_shared<Steady>(1'000'000, false);
  const WorkloadStatistics total = statistics(workload);
  EXPECT_EQ(total.instances, 2'000'000);
  EXPECT_EQ(total.nodes, 4'000'000);
  EXPECT_EQ(total.flops, Flops(14e6));
}

}  // namespace
}  // namespace orrery::graph
