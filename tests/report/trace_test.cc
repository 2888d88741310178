// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "made_run.h"
#include "traced_run.h"

namespace orrery::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::made_run;
using testing::trace_of;
using testing::traced_run;

std::vector<json> complete_events(const json& trace, std::int64_t rank) {
  std::vector<json> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == rank && event["cat"] != "kernel") {
      events.push_back(event);
    }
  }
  return events;
}

// --- the breakdown, once more, from the trace alone ----------------------------------------------

using Categories = std::map<std::string, std::int64_t>;  // picoseconds

/// Counts what runs at an instant.
struct Active {
  std::map<std::string, int> phases;
  std::map<std::string, int> groups;

  void change(const json& event, int by) {
    const json& args = event["args"];
    const bool computes = args["stream"] == "compute";
    (computes ? phases : groups)[args[computes ? "phase" : "group"].get<std::string>()] += by;
  }
  static std::string first(const std::map<std::string, int>& counts,
                           std::initializer_list<const char*> order) {
    for (const char* name : order) {
      const auto found = counts.find(name);
      if (found != counts.end() && found->second > 0) {
        return name;
      }
    }
    return "";
  }
  /// The rule of timeline.h.
  std::string category() const {
    std::string phase = first(phases, {"forward", "backward", "recompute", "optimizer"});
    const std::string group = first(groups, {"tp", "dp", "embedding", "pp"});
    if (!phase.empty()) {
      return phase;
    }
    return group.empty() ? "bubble" : group + "_exposed";
  }
};

Categories recompute_breakdown(const std::vector<json>& events, std::int64_t step_ps) {
  std::map<std::int64_t, std::vector<std::pair<const json*, int>>> changes;
  changes[0];
  changes[step_ps];
  Categories time;
  for (const json& event : events) {
    const json& args = event["args"];
    changes[args["begin_ps"].get<std::int64_t>()].emplace_back(&event, 1);
    changes[args["end_ps"].get<std::int64_t>()].emplace_back(&event, -1);
    const auto stall = args["host_stall_ps"].get<std::int64_t>();
    if (stall != 0) {
      time["host"] += stall;
      time[args["phase"].get<std::string>()] -= stall;
    }
  }
  Active active;
  for (auto at = changes.begin(); std::next(at) != changes.end(); ++at) {
    for (const auto& [event, by] : at->second) {
      active.change(*event, by);
    }
    time[active.category()] += std::next(at)->first - at->first;
  }
  return time;
}

Categories booked(const simulate::TimeCategories& categories,
                  const simulate::Breakdown& breakdown) {
  Categories time;
  for (std::size_t row = 0; row < categories.size(); ++row) {
    if (breakdown.time[row] != Time(0)) {
      time[categories.name(row)] = breakdown.time[row].value();
    }
  }
  return time;
}

struct Case {
  const char* name;
  plan::Plan plan;
};

plan::Plan traced_plan() {
  plan::Plan plan;
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 2;
  plan.global_batch = 16;
  plan.microbatch = 1;
  return plan;
}

std::vector<Case> cases() {
  std::vector<Case> cases(5, Case{"", traced_plan()});
  cases[0].name = "1f1b with full recompute";
  cases[0].plan.recompute = plan::Recompute::full;
  cases[1].name = "interleaved with overlapped sends and gradients";
  cases[1].plan.schedule = plan::Schedule::interleaved;
  cases[1].plan.chunks = 3;
  cases[1].plan.overlap_p2p = true;
  cases[1].plan.overlap_grad_reduce = true;
  cases[2].name = "slow host that waits for messages";
  cases[2].plan.host_dispatch = 20_us;
  cases[2].plan.p2p_host_sync = true;
  cases[3].name = "gpipe, sequence parallel, selective recompute, ZeRO-1";
  cases[3].plan.schedule = plan::Schedule::gpipe;
  cases[3].plan.sequence_parallel = true;
  cases[3].plan.recompute = plan::Recompute::selective;
  cases[3].plan.zero = 1;
  cases[4].name = "ZeRO-3 without a pipeline";
  cases[4].plan.pp = 1;
  cases[4].plan.dp = 4;
  cases[4].plan.zero = 3;
  cases[4].plan.overlap_param_gather = true;
  cases[4].plan.overlap_grad_reduce = true;
  return cases;
}

TEST(Trace, BreakdownOfEveryRankIsRecomputedToThePicosecond) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto run = traced_run(c.plan);
    const json trace = json::parse(trace_of(run));
    EXPECT_EQ(trace["otherData"]["critical_rank"], run.timeline.critical_rank);
    for (std::size_t i = 0; i < run.timeline.ranks.size(); ++i) {
      SCOPED_TRACE(run.timeline.ranks[i]);
      Categories again = recompute_breakdown(complete_events(trace, run.timeline.ranks[i]),
                                             run.timeline.step_time.value());
      std::erase_if(again, [](const auto& entry) { return entry.second == 0; });
      EXPECT_EQ(again, booked(run.timeline.categories, run.timeline.by_rank[i]));
    }
  }
}

TEST(Trace, SpansOfOneThreadNeverOverlap) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const json trace = json::parse(trace_of(traced_run(c.plan)));
    std::map<std::pair<std::int64_t, int>, std::int64_t> busy_until;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || event["cat"] == "kernel") {
        continue;
      }
      auto& until = busy_until[{event["pid"].get<std::int64_t>(), event["tid"].get<int>()}];
      ASSERT_LE(until, event["args"]["begin_ps"].get<std::int64_t>());
      until = event["args"]["end_ps"].get<std::int64_t>();
    }
    EXPECT_GT(busy_until.size(), 1U);
  }
}

// --- by hand
// --------------------------------------------------------------------------------------

graph::Program forward_of(graph::Node node) {
  graph::Template forward{"forward", {}};
  forward.nodes.push_back(std::move(node));
  graph::Program program;
  program.templates.push_back(std::move(forward));
  return program;
}

/// One rank of a lone stage with these spans of its one node, a copy.
study::Run run_with(std::vector<simulate::Span> spans) {
  auto run = made_run();
  run.workload =
      plan::step_workload({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}});
  graph::Node node;
  node.name = "store";
  run.workload.programs = {forward_of(node)};
  run.timeline.ranks = {0};
  run.timeline.spans = std::move(spans);
  return run;
}

simulate::Span copy(Time begin, Time end) {
  simulate::Span span;
  span.kind = graph::Node::Kind::copy;
  span.stream = plan::StepStream::to_host;
  span.group = plan::Axis::to_host;
  span.phase = plan::StepPhase::forward;
  span.begin = begin;
  span.end = end;
  return span;
}

TEST(Trace, OverlappingSpansGoToThreadsOfTheirOwn) {
  // [0, 10] and [5, 15] overlap; [10, 20] fits behind the first.
  const json trace =
      json::parse(trace_of(run_with({copy(0_ns, 10_ns), copy(5_ns, 15_ns), copy(10_ns, 20_ns)})));
  const auto events = complete_events(trace, 0);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_NE(events[0]["tid"], events[1]["tid"]);
  EXPECT_EQ(events[0]["tid"], events[2]["tid"]);
  std::map<int, std::string> threads;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      threads[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
    }
  }
  EXPECT_EQ(threads[events[0]["tid"].get<int>()], "to_host");
  EXPECT_EQ(threads[events[1]["tid"].get<int>()], "to_host 2");
}

TEST(Trace, TimesAreMicrosecondsExactToThePicosecond) {
  // 106 days are 9.2e18 ps, more digits than a double has: the text must be exact.
  const std::string text =
      trace_of(run_with({copy(Time(9'000'000'000'000'000'001), Time(9'000'000'000'001'234'568))}));
  EXPECT_NE(text.find(R"("ts":9000000000000.000001,"dur":1.234567)"), std::string::npos) << text;
}

TEST(Trace, AReceiveIsNamedAfterItsMessageAndWhereItComesFrom) {
  // Stage 0 sends, stage 1 receives: rank 2 of tp 2.
  auto run = made_run();
  graph::Node send;
  send.kind = graph::Node::Kind::send;
  send.name = "send_activations";
  run.workload.programs = {forward_of(send), {}};
  simulate::Span sent;
  sent.kind = graph::Node::Kind::send;
  sent.stream = plan::StepStream::pp;
  sent.group = plan::Axis::pp;
  sent.phase = plan::StepPhase::forward;
  sent.end = 5_ns;
  simulate::Span received = sent;
  received.kind = graph::Node::Kind::receive;
  received.stream = plan::StepStream::receive;
  received.rank = 2;
  received.cause = 0;
  run.timeline.ranks = {0, 2};
  run.timeline.spans = {sent, received};
  const json trace = json::parse(trace_of(run));
  const auto from = complete_events(trace, 0);
  const auto to = complete_events(trace, 2);
  ASSERT_EQ(from.size(), 1U);
  ASSERT_EQ(to.size(), 1U);
  EXPECT_EQ(from[0]["name"], "send_activations");
  EXPECT_EQ(to[0]["name"], "send_activations from rank 0");
  EXPECT_EQ(to[0]["args"]["stream"], "receive");
  EXPECT_EQ(to[0]["args"]["group"], "pp");
}

TEST(Trace, ProcessesAreNamedAfterRankAndStage) {
  const json trace = json::parse(trace_of(run_with({})));
  ASSERT_FALSE(trace["traceEvents"].empty());
  EXPECT_EQ(trace["traceEvents"][0]["name"], "process_name");
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank 0 (stage 0)");
}

// --- files
// ----------------------------------------------------------------------------------------

class TraceFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("orrery_trace_" + std::to_string(getpid()));
};

TEST_F(TraceFile, IsWrittenWholeAndLeavesNothingBeside) {
  const fs::path path = folder_ / "step.json";
  std::ofstream(path) << "old";
  ASSERT_TRUE(write_trace_file(run_with({copy(0_ns, 1_ns)}), path.string()));
  std::ifstream file(path);
  EXPECT_EQ(complete_events(json::parse(file), 0).size(), 1U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(TraceFile, ThatCannotBeWrittenIsAMistakeThatNamesIt) {
  const std::string path = (folder_ / "missing" / "step.json").string();
  const auto written = write_trace_file(run_with({}), path);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().to_string().find(path), std::string::npos);
  EXPECT_FALSE(write_trace_file(run_with({}), folder_.string())) << "a folder";
}

TEST_F(TraceFile, FullDiskIsAMistakeAndADeviceIsNeverReplaced) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "needs /dev/full";
  }
  EXPECT_FALSE(write_trace_file(run_with({copy(0_ns, 1_ns)}), "/dev/full"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace orrery::report
