// SPDX-License-Identifier: Apache-2.0
#include "study/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

std::string report(double step, const std::string& breakdown, const std::string& more = "") {
  return "{\"model\": \"m\", \"machine\": \"x\", \"devices\": 8, \"step_time_s\": " +
         std::to_string(step) +
         ", \"tokens_per_s\": 10, \"model_flops_per_device\": 1e12, "
         "\"hardware_flops_per_device\": 1e12, \"mfu\": 0.4, \"hfu\": 0.5, \"breakdown_s\": " +
         breakdown + more + "}";
}

RunFigures figures(const std::string& text) {
  const auto node = parse_config(text, "run.json", ConfigSyntax::json);
  EXPECT_TRUE(node) << node.error().to_string();
  const auto run = parse_run(*node);
  EXPECT_TRUE(run) << run.error().to_string();
  return run.value_or(RunFigures{});
}

const ComparedFigure* find(const Comparison& all, const std::string& group,
                           const std::string& name) {
  for (const ComparedGroup& g : all.groups) {
    for (const ComparedFigure& figure : g.figures) {
      if (g.name == group && figure.name == name) {
        return &figure;
      }
    }
  }
  return nullptr;
}

TEST(Compare, DifferenceAndRatioAreAgainstTheFirst) {
  const Comparison all =
      compare({figures(report(2, "{\"forward\": 1}")), figures(report(3, "{\"forward\": 2.5}")),
               figures(report(1, "{\"forward\": 0.5}"))});
  const ComparedFigure& step = *find(all, "step", "step_time_s");
  EXPECT_EQ(step.difference(1), 1);
  EXPECT_EQ(step.ratio(1), 1.5);
  EXPECT_EQ(step.difference(2), -1);
  EXPECT_EQ(step.ratio(2), 0.5);
  EXPECT_EQ(find(all, "breakdown_s", "forward")->ratio(1), 2.5);
}

TEST(Compare, KeepsWhatARunSaysOfUnsoldHardware) {
  const Comparison all = compare(
      {figures(report(2, "{\"forward\": 1}")),
       figures(report(1, "{\"forward\": 1}", ", \"overlap_tensor\": {\"hypothetical\": \"a\"}"))});
  EXPECT_EQ(all.runs[0].hypothetical, "");
  EXPECT_EQ(all.runs[1].hypothetical, "a");
}

TEST(Compare, ARunWithItselfDiffersInNothing) {
  const std::string text = report(2, "{\"forward\": 1}", ", \"plan\": {\"tp\": 2, \"zero\": 1}");
  const Comparison all = compare({figures(text), figures(text)});
  EXPECT_TRUE(all.plan.empty());
  for (const ComparedGroup& group : all.groups) {
    for (const ComparedFigure& figure : group.figures) {
      EXPECT_EQ(figure.difference(1), 0) << figure.name;
    }
  }
}

TEST(Compare, WhatOneRunDoesNotHaveIsNotZero) {
  const Comparison all = compare({figures(report(2, "{\"forward\": 1, \"host\": 0}")),
                                  figures(report(3, "{\"forward\": 1, \"ep_exposed\": 2}"))});
  const ComparedFigure& extra = *find(all, "breakdown_s", "ep_exposed");
  EXPECT_FALSE(extra.values[0]);
  EXPECT_EQ(extra.values[1], 2);
  EXPECT_FALSE(extra.difference(1));
  EXPECT_FALSE(find(all, "breakdown_s", "host")->ratio(1));  // and a ratio to 0 is none
}

TEST(Compare, PlanFieldsThatDifferAreListed) {
  const Comparison all = compare(
      {figures(report(2, "{\"a\": 1}", ", \"plan\": {\"tp\": 2, \"zero\": 1}")),
       figures(report(2, "{\"a\": 1}", ", \"plan\": {\"tp\": 4, \"zero\": 1, \"cp\": 2}"))});
  ASSERT_EQ(all.plan.size(), 2U);
  EXPECT_EQ(all.plan[0].field, "tp");
  EXPECT_EQ(all.plan[0].values, (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(all.plan[1].field, "cp");
  EXPECT_EQ(all.plan[1].values, (std::vector<std::string>{"-", "2"}));
}

TEST(Compare, MemoryIsTheFullestStages) {
  const RunFigures run = figures(report(
      2, "{\"a\": 1}", ", \"memory_bytes\": [{\"total\": 5, \"x\": 1}, {\"total\": 7, \"x\": 2}]"));
  const auto& group = run.groups.back();
  EXPECT_EQ(group.name, "memory_bytes");
  EXPECT_EQ(group.figures[1].value, 2);
}

TEST(Compare, NestedFiguresHaveDottedNames) {
  const RunFigures run = figures(
      report(2, "{\"a\": 1}", ", \"energy\": {\"per_step_j\": 3, \"links_j\": {\"nvlink\": 4}}"));
  EXPECT_EQ(run.groups.back().figures[1].name, "links_j.nvlink");
}

TEST(Compare, AReportThatLacksFiguresSaysWhich) {
  const auto node =
      parse_config("{\"model\": \"m\", \"step_time_s\": \"fast\", \"breakdown_s\": {}}", "run.json",
                   ConfigSyntax::json);
  ASSERT_TRUE(is_run(*node));
  const auto run = parse_run(*node);
  ASSERT_FALSE(run);
  const std::string text = run.error().to_string();
  for (const char* field : {"machine", "devices", "step_time_s", "mfu", "breakdown_s"}) {
    EXPECT_THAT(text, HasSubstr(std::string("run.json:1: ") + field));
  }
}

}  // namespace
}  // namespace orrery::study
