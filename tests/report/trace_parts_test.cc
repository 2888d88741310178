// SPDX-License-Identifier: Apache-2.0
// What a trace says beside its spans: kernels, arrows, layers, bytes.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "traced_run.h"

namespace orrery::report {
namespace {

using nlohmann::json;
using testing::trace_of;
using testing::traced_run;

plan::Plan base_plan() {
  plan::Plan plan;
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 2;
  plan.global_batch = 16;
  return plan;
}

TEST(TraceParts, KernelsOfASpanFollowEachOtherWithinIt) {
  plan::Plan slow_host = base_plan();
  slow_host.host_dispatch = 20_us;
  for (const plan::Plan& plan : {base_plan(), slow_host}) {
    const json trace = json::parse(trace_of(traced_run(plan)));
    const json* span = nullptr;
    double end = 0;
    std::size_t kernels = 0;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") {
        continue;
      }
      if (event["cat"] != "kernel") {
        span = &event;
        end = event["ts"];
        continue;
      }
      ASSERT_NE(span, nullptr);
      EXPECT_EQ(event["tid"], (*span)["tid"]);
      ASSERT_GE(event["ts"].get<double>(), end);
      end = event["ts"].get<double>() + event["dur"].get<double>() - 1e-7;  // as doubles add up
      ASSERT_LE(end, (*span)["ts"].get<double>() + (*span)["dur"].get<double>());
      ++kernels;
    }
    EXPECT_GT(kernels, 0U);
  }
}

TEST(TraceParts, EveryMessageHasAnArrowFromItsSendToItsReceive) {
  const json trace = json::parse(trace_of(traced_run(base_plan())));
  std::map<std::int64_t, const json*> from;
  std::map<std::int64_t, const json*> to;
  std::size_t receives = 0;
  const json* span = nullptr;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] != "kernel") {
      span = &event;
      receives += event["args"].value("stream", "") == "receive" ? 1 : 0;
    } else if (event["ph"] == "s" || event["ph"] == "f") {
      (event["ph"] == "s" ? from : to)[event["id"].get<std::int64_t>()] = &event;
      const double at = event["ts"];
      EXPECT_EQ(event["tid"], (*span)["tid"]);
      EXPECT_GE(at, (*span)["ts"].get<double>());
      EXPECT_LT(at, (*span)["ts"].get<double>() + (*span)["dur"].get<double>());
    }
  }
  EXPECT_GT(receives, 0U);
  EXPECT_EQ(to.size(), receives);
  ASSERT_EQ(from.size(), to.size());
  for (const auto& [id, event] : from) {
    ASSERT_TRUE(to.contains(id));
    EXPECT_NE((*event)["pid"], (*to[id])["pid"]);
    EXPECT_LT((*event)["ts"].get<double>(), (*to[id])["ts"].get<double>());
  }
}

TEST(TraceParts, SpansSayTheirLayersAndBytes) {
  // gpt2 has 12 layers: of two stages the second holds 6 to 11. One microbatch's activations
  // between them are 1024 tokens x 768 features x 2 bytes, halved by sequence parallelism (tp 2).
  auto plan = base_plan();
  plan.sequence_parallel = true;
  const json trace = json::parse(trace_of(traced_run(plan)));
  std::map<std::string, std::set<std::int64_t>> layers;  // by process
  std::map<std::int64_t, std::string> processes;
  std::set<std::int64_t> message;
  bool several = false;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes[event["pid"].get<std::int64_t>()] = event["args"]["name"].get<std::string>();
    }
    if (!event.contains("args")) {
      continue;
    }
    if (event["args"].contains("layer")) {
      layers[processes[event["pid"].get<std::int64_t>()]].insert(
          event["args"]["layer"].get<std::int64_t>());
    }
    several = several || event["args"].contains("layers");
    if (event["args"].value("group", "") == "pp" && event["args"].contains("bytes")) {
      message.insert(event["args"]["bytes"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(layers.size(), 2U);
  for (const auto& [process, numbers] : layers) {
    const bool second = process.find("stage 1") != std::string::npos;
    EXPECT_EQ(numbers, second ? (std::set<std::int64_t>{6, 7, 8, 9, 10, 11})
                              : (std::set<std::int64_t>{0, 1, 2, 3, 4, 5}));
  }
  EXPECT_TRUE(several) << "a span of several layers says so";
  EXPECT_TRUE(message.contains(1024 * 768 * 2 / 2));
}

TEST(TraceParts, ItsSizeIsKnownBeforeItIsWritten) {
  const study::Run run = traced_run(base_plan());
  EXPECT_EQ(trace_size(run), Bytes(static_cast<std::int64_t>(trace_of(run).size()) + 1));
}

}  // namespace
}  // namespace orrery::report
