// SPDX-License-Identifier: Apache-2.0
#include "serving/gpu_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "serving/cloud_prices.h"
#include "serving/host_fit.h"
#include "serving/search.h"
#include "serving/stated_fields.h"

namespace orrery::serving {
namespace {

using ::testing::HasSubstr;

zoo::Model searched_model() {
  return zoo::load_model("llama-3.2-1b").value();
}
machine::Machine node_of(const char* name) {
  return machine::load_machine(name).value();
}

PlanSearch search_of(double rate) {
  PlanSearch search;
  search.machines = {node_of("dgx-h100")};
  search.devices = 1;
  search.load.rate = rate;
  search.load.input.first = 2000;
  search.load.output.first = 40;
  search.load.count = 300;
  search.objectives.ttft = 200_ms;
  return search;
}

TEST(SearchGpus, OneEngineFewerBreaksTheLimits) {
  PlanSearch search = search_of(200);
  search.requests = requests::generate(search.load);
  search.rate = 200;
  const Engine engine = load_engine("vllm@0.19").value();
  const GpusFound found = search_gpus(searched_model(), engine, search);
  ASSERT_EQ(found.choices.size(), 1U);
  const GpuChoice& best = found.choices.front();
  ASSERT_GT(best.layout.devices, 1);
  EXPECT_GE(best.attained, search.attainment);
  for (const std::int64_t fewer : {0, 1}) {
    Engine again = best.layout.engine;
    again.replicas = best.layout.devices - fewer;
    const serving::Run run =
        serve(searched_model(), search.machines[0], again, search.requests).value();
    EXPECT_EQ(attainment(run, search.objectives) >= search.attainment, fewer == 0);
  }
}

TEST(SearchPlans, WithLimitsALayoutHasTheRateThatSearchRateFinds) {
  const PlanSearch search = search_of(1);
  const Engine engine = load_engine("vllm@0.19").value();
  const PlansFound found = search_plans(searched_model(), engine, search);
  ASSERT_EQ(found.front.size(), 1U);
  Server server = Server::make(searched_model(), search.machines[0], engine).value();
  const RateFound rate = search_rate(server, search.load, {.objectives = search.objectives});
  EXPECT_EQ(found.front[0].rate, rate.rate);
  EXPECT_EQ(found.front[0].per_device,
            metrics(rate.run, search.machines[0]).output_tokens_per_s_per_device);
}

TEST(Search, TheCurveOfLatencyHasTheRunAtItsRateAndGrowsWithTheLoad) {
  const machine::Machine machine = node_of("dgx-h100");
  auto server = Server::make(searched_model(), machine, load_engine("vllm@0.19").value());
  ASSERT_TRUE(server.has_value());
  requests::Generator load = search_of(20).load;
  load.count = 50;
  const std::vector<LoadPoint> curve = load_curve(*server, load, load.rate, {}, machine);
  ASSERT_EQ(curve.size(), 8U);
  EXPECT_EQ(curve[3].rate, load.rate);  // once, after a quarter, half and three quarters
  const Metrics alone = metrics(server->run(requests::generate(load)), machine);
  EXPECT_EQ(curve[3].ttft.p99, alone.ttft.p99);
  EXPECT_EQ(curve[3].e2e.median, alone.e2e.median);
  EXPECT_EQ(curve[7].rate, 3 * load.rate);
  EXPECT_GT(curve[7].e2e.mean, curve[0].e2e.mean);  // more requests share each step
  EXPECT_TRUE(load_curve(*server, load, 0, {}, machine).empty());
}

TEST(WhatFits, AModelThatDoesNotFitSaysWhatItNeeds) {
  // Llama 3 70B on cards of which 0.9 x 85.5 = 77 GB may be used: 141 GB in bf16 are 70.6 on each
  // of two; in fp8 68.5 of layers and 4.2 of 16-bit tables are 72.7 on one.
  EXPECT_EQ(what_fits(zoo::load_model("llama-3-70b").value(), node_of("dgx-h100"),
                      load_engine("vllm@0.19").value()),
            "it fits 2 in bf16, 1 in fp8 (devices of dgx-h100)");
}

TEST(CloudPrices, EachHasADateASourceAndMachinesThatExist) {
  const auto prices = load_cloud_prices();
  ASSERT_TRUE(prices.has_value()) << prices.error().to_string();
  std::set<std::string> clouds;
  for (const CloudPrice& price : *prices) {
    clouds.insert(price.cloud);
    EXPECT_EQ(price.date.size(), 10U) << price.name();
    EXPECT_FALSE(price.source.empty());
    for (const std::string& machine : price.machines) {
      EXPECT_TRUE(machine::load_machine(machine).has_value()) << machine;
    }
  }
  EXPECT_EQ(clouds, (std::set<std::string>{"aws", "azure", "gcp"}));
}

TEST(StatedFields, AFlagStandsInsteadOfTheFilesField) {
  const zoo::ModelFile model = zoo::load_model_file("meta-llama/Llama-3.1-8B-Instruct").value();
  EXPECT_EQ(model.name, "llama-3.1-8b");
  const auto engine = load_engine_with(
      model, "vllm@0.19", {{"parallel", "tp", "2", "--tp"}, {"host", "gap", "1 ms", "--host-gap"}});
  ASSERT_TRUE(engine.has_value()) << engine.error().to_string();
  EXPECT_EQ(engine->tp, 2);
  EXPECT_EQ(engine->gap, 1_ms);
  const auto wrong = load_engine_with(
      model, "vllm@0.19",
      {{"parallel", "tp", "two", "--tp"}, {"cache", "block_size", "0", "--block-size"}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().to_string(), HasSubstr("--tp: found 'two'"));
  const bool has = std::ranges::any_of(foreign_flags(), [](const ForeignFlag& flag) {
    return flag.flag == "--mem-fraction-static" && flag.own == "--memory-utilization";
  });
  EXPECT_TRUE(has);
}

TEST(FitHost, AWrongTableIsNamed) {
  const auto read = [](const char* text) {
    return parse_csv(text, "seen.csv").and_then(read_measured_requests);
  };
  EXPECT_THAT(read("input_tokens,sent_s\n1,2\n").error().to_string(),
              HasSubstr("seen.csv:1: ttft_s: missing"));
  EXPECT_THAT(
      read("input_tokens,output_tokens,sent_s,ttft_s,tpot_s\n10,5,0,x,0.1\n").error().to_string(),
      HasSubstr("seen.csv:2: ttft_s: found 'x'"));
}

}  // namespace
}  // namespace orrery::serving
