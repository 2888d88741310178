// SPDX-License-Identifier: Apache-2.0
#include "web/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "machine/machine.h"
#include "study/run.h"
#include "web/extra.h"

namespace orrery::web {
namespace {

study::Run two_stages(bool fold) {
  plan::Plan plan;
  plan.pp = 2;
  plan.dp = 2;
  plan.global_batch = 8;
  const auto run = study::run_step(zoo::load_model("gpt2").value(),
                                   machine::load_machine("dgx-a100-80g").value(), plan, 0,
                                   {.fold = fold, .record_spans = true});
  EXPECT_TRUE(run) << run.error().to_string();
  return run.value();
}

nlohmann::json timeline_of(const study::Run& run, const TimelineLimits& limits = {}) {
  std::string text;
  {
    report::JsonWriter json([&](std::string_view piece) { text += piece; });
    write_timeline(run, json, limits);
  }
  return nlohmann::json::parse(text);
}

TEST(Timeline, HasEverySpanWhereThereIsRoom) {
  const study::Run run = two_stages(true);
  const auto timeline = timeline_of(run);
  EXPECT_EQ(timeline.at("spans").size(), run.timeline.spans.size());
  std::size_t of = 0;
  for (const auto& lane : timeline.at("lanes")) {
    of += lane.at("of").get<std::size_t>();
  }
  EXPECT_EQ(of, run.timeline.spans.size());
  EXPECT_GE(timeline.at("end").get<std::int64_t>(), run.timeline.step_time.value() / 1000);
}

TEST(Timeline, ShowsTheTimeOfKernelsThatTheBreakdownCounts) {
  // Rank 0's forward spans, less the waits for the host within them, are its row "forward".
  const study::Run run = two_stages(true);
  const auto timeline = timeline_of(run);
  double forward_ns = 0;
  for (const auto& span : timeline.at("spans")) {
    const auto& lane = timeline.at("lanes").at(span.at(0).get<std::size_t>());
    const bool counts = lane.at("rank") == run.timeline.critical_rank &&
                        timeline.at("categories").at(span.at(4).get<std::size_t>()) == "forward";
    forward_ns += counts ? span.at(2).get<double>() : 0;
  }
  const double rounding_ns = static_cast<double>(run.timeline.spans.size());
  EXPECT_NEAR(forward_ns, to_seconds(run.timeline.time("forward")) * 1e9, rounding_ns);
}

TEST(Timeline, PutsRanksTogetherThatDoTheSame) {
  // Without folding 4 ranks are simulated: two stages of two replicas that do the same.
  std::map<std::int64_t, std::int64_t> like;  // by rank
  const auto timeline = timeline_of(two_stages(false));
  for (const auto& lane : timeline.at("lanes")) {
    like[lane.at("rank")] = lane.at("like");
  }
  EXPECT_EQ(like.size(), 2U);
  for (const auto& [rank, ranks] : like) {
    EXPECT_EQ(ranks, 2) << rank;
  }
}

TEST(Timeline, OfMoreSpansThanTheLimitIsCoarser) {
  const study::Run run = two_stages(true);
  ASSERT_GT(run.timeline.spans.size(), 40U);
  const auto timeline = timeline_of(run, {.spans = 40});
  EXPECT_LE(timeline.at("spans").size(), 40U);
  std::size_t counted = 0;
  for (const auto& span : timeline.at("spans")) {
    counted += span.at(5).get<std::size_t>();
  }
  EXPECT_EQ(counted, run.timeline.spans.size());  // none is lost
  EXPECT_NE(timeline.at("note").get<std::string>().find("put together"), std::string::npos);
}

TEST(Histogram, CountsEveryRequestOnce) {
  serving::Run run;
  for (int i = 0; i < 10; ++i) {  // first tokens after 0.1 s, 0.2 s ... 1 s
    serving::Served served;
    served.output = 1;
    served.first = Time(100'000'000'000) * (i + 1);
    served.last = served.first;
    run.requests.push_back(served);
  }
  const study::NearestRow near{
      .table = "logs", .key = "row", .predicted = 2, .published = 1, .error = 1};
  const auto extra = nlohmann::json::parse(serving_extra(run, {}, {near}));
  EXPECT_EQ(extra.at("nearest").at(0).at("table"), "logs");
  EXPECT_EQ(extra.at("nearest").at(0).at("error"), 1);
  const auto& histograms = extra.at("histograms");
  ASSERT_EQ(histograms.size(), 2U);  // no further tokens
  EXPECT_EQ(histograms[0].at("name"), "TTFT");
  EXPECT_DOUBLE_EQ(histograms[0].at("from"), 0.1);
  EXPECT_DOUBLE_EQ(histograms[0].at("width"), 0.03);  // 0.9 s in 30 parts
  EXPECT_EQ(histograms[0].at("counts").front(), 1);
  EXPECT_EQ(histograms[0].at("counts").back(), 1);
  std::int64_t all = 0;
  for (const auto& count : histograms[0].at("counts")) {
    all += count.get<std::int64_t>();
  }
  EXPECT_EQ(all, 10);
}

}  // namespace
}  // namespace orrery::web
