// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "made_run.h"
#include "report/diagnose.h"
#include "report/explain.h"
#include "report/flit.h"
#include "report/goodput.h"
#include "report/schemas.h"
#include "report/serving.h"
#include "report/trust.h"

namespace orrery::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::made_run;
using ::testing::Not;

TEST(Table, SaysTheStepTimeAndTheRates) {
  const std::string table = table_report(made_run());
  EXPECT_THAT(table, HasSubstr("tiny on 4 x Box (two-boxes)"));
  EXPECT_THAT(table, ContainsRegex("Step time +100 ms"));
  EXPECT_THAT(table, ContainsRegex("Tokens/s +10,240 +2.56 k per device"));
  EXPECT_THAT(table, ContainsRegex("Model FLOP/s +120 TFLOP/s +per device, MFU 37.5 %"));
  EXPECT_THAT(table, ContainsRegex("Hardware FLOP/s +160 TFLOP/s +per device, HFU 50.0 %"));
}

TEST(Table, HeadingNamesEveryDegreeAndWhatGemmsRunIn) {
  auto run = made_run();
  EXPECT_THAT(table_report(run), Not(ContainsRegex(", [ce]p ")));
  run.plan.cp = 4;
  run.plan.cp_exchange = plan::ContextExchange::a2a;
  run.plan.ep = 8;
  run.plan.etp = 2;
  run.plan.quantization = plan::Quantization::fp8_block;
  const std::string table = table_report(run);
  EXPECT_THAT(table, ContainsRegex("tp [0-9].*, cp 4 \\(a2a\\), pp [0-9].*, ep 8 x etp 2; "));
  EXPECT_THAT(table, HasSubstr(" with fp8-block; unfused attention\n"));
}

TEST(Table, SharesOfTheTimeAddUpToAll) {
  const std::string table = table_report(made_run());
  EXPECT_THAT(table, ContainsRegex("forward +0.025000 s +25.0 %"));
  EXPECT_THAT(table, ContainsRegex("tp exposed +0.010000 s +10.0 %"));
  EXPECT_THAT(table, ContainsRegex("bubble +0.015000 s +15.0 %"));
  EXPECT_THAT(table, ContainsRegex("total +0.100000 s +100.0 %"));
  EXPECT_THAT(table, Not(HasSubstr("recompute  ")));  // took no time: no line
}

TEST(Table, HiddenCommunicationStandsApart) {
  EXPECT_THAT(table_report(made_run()), ContainsRegex("hidden[^\n]*\n  dp +0.005000 s"));
}

TEST(Table, MarksTheStageThatDoesNotFit) {
  // 7 of 10 GiB; 12 of 10 GiB.
  const std::string table = table_report(made_run());
  EXPECT_THAT(table, ContainsRegex("\n +0 +4.00 [^\n]*7.00 +70 %\n"));
  EXPECT_THAT(table, ContainsRegex("\n +1 +12.00 [^\n]*12.00 +120 %  DOES NOT FIT\n"));
}

TEST(Table, SaysWhenAMachineStatesNothingOfItsFramework) {
  auto run = made_run();
  EXPECT_THAT(table_report(run), HasSubstr("two-boxes states no framework_memory"));
  run.machine.device.framework_memory = 1_GiB;
  run.memory[0][plan::MemoryCategory::framework] = 1_GiB;
  EXPECT_THAT(table_report(run), Not(HasSubstr("states no")));
  EXPECT_THAT(table_report(run), ContainsRegex("logits +framework +total"));
  EXPECT_THAT(table_report(run), ContainsRegex("\n +0 +4.00 [^\n]*1.00 +8.00 +80 %\n"));
  EXPECT_THAT(json_of(run), HasSubstr("\"framework\""));
}

TEST(Table, LongPipelinesShowFirstLastAndFullest) {
  auto run = made_run();
  run.memory.assign(20, run.memory[0]);
  run.memory[7][plan::MemoryCategory::activations] = 4_GiB;
  const std::string table = table_report(run);
  EXPECT_THAT(table, ContainsRegex("\n +0 [^\n]*\n +7 [^\n]*\n +19 [^\n]*\n  .first, last and "
                                   "fullest of 20 stages"));
}

TEST(Table, SaysWhatWasFoldedAndWhyNot) {
  const std::string table = table_report(made_run());
  EXPECT_THAT(table, HasSubstr("Simulated 2 of 4 ranks"));
  EXPECT_THAT(table, HasSubstr("2,000 events in 1 ms: 2 M events/s"));
  EXPECT_THAT(table, HasSubstr("not folded: dp: the ring is partial"));
  EXPECT_THAT(table, Not(ContainsRegex("\n  pipeline ")));
  EXPECT_THAT(table_report(made_run(), {.verbose = true}), ContainsRegex("pipeline +200 us"));
}

TEST(Table, IsAtMostAHundredColumnsWide) {
  std::istringstream lines(table_report(made_run(), {.verbose = true}));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U + std::string("  DOES NOT FIT").size()) << line;
  }
}

TEST(Json, HasEveryFigureWithItsUnitInTheKey) {
  const auto json = nlohmann::json::parse(json_of(made_run()));
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["machine"], "two-boxes");
  EXPECT_EQ(json["devices"], 4);
  EXPECT_EQ(json["step_time_s"], 0.1);
  EXPECT_EQ(json["tokens_per_s"], 10240);
  EXPECT_EQ(json["model_flops_per_device"], 120e12);
  EXPECT_EQ(json["hardware_flops_per_device"], 160e12);
  EXPECT_EQ(json["peak_type"], "bf16");
  EXPECT_EQ(json["mfu"], 0.375);
  EXPECT_EQ(json["hfu"], 0.5);
  EXPECT_EQ(json["hidden_s"]["dp"], 0.005);
  EXPECT_EQ(json["events"], 2000);
  EXPECT_EQ(json["timing"]["wall_s"], 0.001);
  EXPECT_EQ(json["timing"]["events_per_s"], 2e6);
  EXPECT_EQ(json["fold"]["ranks"], 4);
  EXPECT_EQ(json["fold"]["simulated"], 2);
  EXPECT_EQ(json["fold"]["reasons"][0], "dp: the ring is partial");
  EXPECT_EQ(json["timing"]["passes_s"]["simulate"], 0.0005);
}

TEST(Json, BreakdownSumsToTheStepTime) {
  const auto json = nlohmann::json::parse(json_of(made_run()));
  double sum = 0;
  for (const auto& seconds : json["breakdown_s"]) {
    sum += seconds.get<double>();
  }
  // And host and bubble.
  EXPECT_EQ(json["breakdown_s"].size(),
            kNames<plan::StepPhase>.size() + kNames<plan::Exposed>.size() + 2);
  EXPECT_DOUBLE_EQ(sum, 0.1);
}

TEST(Json, MemoryIsAListByStage) {
  const auto memory = nlohmann::json::parse(json_of(made_run()))["memory_bytes"];
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0]["parameters"], 4LL << 30);
  EXPECT_EQ(memory[0]["total"], 7LL << 30);
  EXPECT_EQ(memory[0]["capacity"], 10LL << 30);
  EXPECT_EQ(memory[0]["fits"], true);
  EXPECT_EQ(memory[1]["fits"], false);
}

TEST(Json, PlanHasEveryFieldAndReadsBackEqual) {
  plan::Plan plan = made_run().plan;
  plan.bucket = 25_MiB;
  plan.host_dispatch = 7_us;
  plan.sequence_parallel = true;
  const std::string text = json_text([&](JsonWriter& json) { write_plan(json, plan); });
  const auto node = parse_config(text, "plan.json", ConfigSyntax::json);
  ASSERT_TRUE(node) << node.error().to_string();
  const auto again = plan::parse_plan(*node);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*again, plan);
  int fields = 0;
  plan::Plan::fields([&](auto, auto, auto) { ++fields; });
  EXPECT_EQ(nlohmann::json::parse(text).size(), static_cast<std::size_t>(fields));
}

TEST(Json, EnergyAndCostAreThereWhenTheMachineStatesThem) {
  auto run = made_run();
  const auto without = nlohmann::json::parse(json_of(run));
  EXPECT_FALSE(without.contains("energy"));
  EXPECT_FALSE(without.contains("cost"));
  // 4 devices for 0.1 s: idle 40 J; 1024 tokens; 4 * 0.1 s / 3600 s * 9 dollars = 0.001.
  run.machine.device.power = Power(400);
  run.machine.device.idle_power = Power(100);
  run.machine.device.memory = {{"hbm", 10_GiB, 1_GBps, Time(0)}};
  run.machine.device.price_per_hour = Money(9);
  run.workload.roles.clear();
  run.workload.ranks = 0;
  const auto with = nlohmann::json::parse(json_of(run));
  EXPECT_DOUBLE_EQ(with.at("energy").at("per_step_j"), 40);
  EXPECT_DOUBLE_EQ(with.at("energy").at("per_token_j"), 40.0 / 1024);
  EXPECT_DOUBLE_EQ(with.at("energy").at("tokens_per_j"), 1024 / 40.0);
  EXPECT_DOUBLE_EQ(with.at("energy").at("per_step_kwh"), 40 / 3.6e6);
  EXPECT_DOUBLE_EQ(with.at("energy").at("average_device_power_w"), 100);
  EXPECT_DOUBLE_EQ(with.at("cost").at("per_step"), 0.001);
  EXPECT_DOUBLE_EQ(with.at("cost").at("per_million_tokens"), 0.001 / 1024 * 1e6);
  const std::string table = table_report(run);
  EXPECT_THAT(table, ContainsRegex("Energy +40 J +per step, 100 W per device"));
  EXPECT_THAT(table, ContainsRegex("Cost +0.001 USD +per step, 0.9766 USD per million tokens"));
  EXPECT_THAT(table_report(made_run()), Not(HasSubstr("Energy")));
}

/// Splits a CSV line without line breaks in fields.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

TEST(Json, AServedRunSaysHowFarItCanBeTrusted) {
  // The bounds of a rate and of times stand on either side of what is predicted.
  const auto machine = machine::load_machine("dgx-h100");
  ASSERT_TRUE(machine.has_value());
  serving::Run run;
  run.engine.name = "vllm@0.10.1";
  serving::Metrics metrics;
  metrics.output_tokens_per_s = 1000;
  metrics.ttft.mean = from_seconds(0.2);
  metrics.tpot.mean = from_seconds(0.01);
  const serving::Metrics* unfused = nullptr;
  const machine::Machine* known = &*machine;
  const auto json = nlohmann::json::parse(json_of(run, metrics, unfused, known));
  EXPECT_EQ(json["trust"]["kind"], "served_rate");
  EXPECT_EQ(json["trust"]["framework"], "vllm");
  for (const auto& [key, value] :
       {std::pair("interval80", 1000.0), std::pair("ttft_interval80_s", 0.2),
        std::pair("tpot_interval80_s", 0.01)}) {
    EXPECT_LT(json[key][0], value) << key;
    EXPECT_GT(json[key][1], value) << key;
  }
  EXPECT_THAT(served_trust_text(run, metrics, *known), HasSubstr("Mean TPOT (ms) of 80 %"));
  EXPECT_THAT(served_trust_text(run, metrics, *known), Not(HasSubstr("clients ask for")));
  // Requests that come over 10 s and want 10,500 tokens: no engine answers 1,050 a second.
  metrics.output_tokens = 10'500;
  run.requests = {serving::Served{.sent = Time(0)}, serving::Served{.sent = 10_s}};
  const auto limited = nlohmann::json::parse(json_of(run, metrics, unfused, known));
  EXPECT_DOUBLE_EQ(limited["interval80"][1].get<double>(), 1050);
  EXPECT_EQ(limited["interval80"][0], json["interval80"][0]);
  EXPECT_THAT(served_trust_text(run, metrics, *known), HasSubstr("1050, what clients ask for"));
  serving::Metrics nothing = metrics;  // was answered
  nothing.output_tokens_per_s = 0;
  nothing.ttft.mean = nothing.tpot.mean = Time(0);
  EXPECT_THAT(served_trust_text(run, nothing, *known),
              ::testing::AllOf(HasSubstr("no token was answered"), Not(HasSubstr("of 80 %"))));
  EXPECT_TRUE(nlohmann::json::parse(json_of(run, nothing, unfused, known))["interval80"].empty());
  run.max_concurrency = 2;  // clients that wait ask for more as soon as an engine is faster
  EXPECT_EQ(nlohmann::json::parse(json_of(run, metrics, unfused, known))["interval80"],
            json["interval80"]);
}

TEST(Csv, EveryValueStandsUnderItsName) {
  std::istringstream text(csv_report(made_run()));
  std::string header;
  std::string line;
  std::getline(text, header);
  std::getline(text, line);
  const auto names = cells(header);
  const auto values = cells(line);
  ASSERT_EQ(names.size(), values.size());
  std::map<std::string, std::string> row;
  for (std::size_t i = 0; i < names.size(); ++i) {
    row[names[i]] = values[i];
  }
  EXPECT_EQ(row.size(), names.size()) << "a column twice";
  EXPECT_EQ(row["plan.tp"], "2");
  EXPECT_EQ(row["plan.stage_layers"], "3,1");  // quoted in the file
  EXPECT_EQ(row["step_time_s"], "0.1");
  EXPECT_EQ(row["breakdown_s.backward"], "0.05");
  EXPECT_EQ(row["memory_stage"], "1");  // the fullest
  EXPECT_EQ(row["memory_bytes.total"], std::to_string(12LL << 30));
  EXPECT_EQ(row["fits"], "false");
  EXPECT_FALSE(std::getline(text, line)) << "two lines only";
}

/// Requires that `value` has all required fields of `schema`, no others than its own, and their
/// types.
void expect_described(const nlohmann::json& value, const nlohmann::json& schema,
                      const std::string& at) {
  const std::map<std::string, bool> is{{"object", value.is_object()},
                                       {"array", value.is_array()},
                                       {"string", value.is_string()},
                                       {"boolean", value.is_boolean()},
                                       {"integer", value.is_number_integer()},
                                       {"number", value.is_number()},
                                       {"null", value.is_null()}};
  const auto types = schema.at("type").is_array()
                         ? schema.at("type").get<std::vector<std::string>>()
                         : std::vector{schema.at("type").get<std::string>()};
  EXPECT_TRUE(std::ranges::any_of(types, [&](const auto& type) { return is.at(type); })) << at;
  for (const auto& name : schema.value("required", nlohmann::json::array())) {
    EXPECT_TRUE(value.is_null() || value.contains(name)) << at << " lacks " << name;
  }
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      const bool own = schema.contains("properties") && schema["properties"].contains(name);
      ASSERT_TRUE(own || schema.at("additionalProperties").is_object()) << at << "." << name;
      expect_described(inner, own ? schema["properties"][name] : schema["additionalProperties"],
                       at + "." + name);
    }
  }
  if (value.is_array() && schema.at("items").contains("type") &&
      !schema["items"]["type"].is_array()) {
    for (const auto& inner : value) {
      expect_described(inner, schema["items"], at + "[]");
    }
  }
}

template <class... Parts>
void expect_schema(std::string_view name, const Parts&... parts) {
  auto schema = nlohmann::json::parse(declared_schema(name));
  std::erase(schema["required"].get_ref<nlohmann::json::array_t&>(), "orrery");  // of the command
  expect_described(nlohmann::json::parse(json_of(parts...)), schema, std::string(name));
}

TEST(Schemas, DescribeWhatResultsSay) {
  const study::Run run = made_run();
  expect_schema("simulate", run);
  goodput::Asked asked;
  expect_schema("goodput", GoodputReport{.asked = asked, .lives = {}});
  expect_schema("run-plan", run, study::RunPlan{}, asked, 1.0);
  asked.scenario.components.push_back(
      {.name = "device", .mtbf = Duration(1e6), .detection = Duration(60)});
  asked.scenario.checkpoint.cost.holds = Duration(60);
  goodput::Lives lives;
  lives.stops_by_component = {1};
  expect_schema(
      "goodput",
      GoodputReport{.asked = asked, .length = Duration(86400), .seeds = 2, .lives = lives});
  serving::Run served;
  serving::Metrics metrics;
  const serving::Metrics* const nothing = nullptr;
  const machine::Machine* const machine = &run.machine;
  expect_schema("serve", served, metrics, nothing, machine);
  served.rate = 2;
  served.engine.prefill = 1;
  served.fused.emplace_back();
  metrics.energy = Energy(3);
  metrics.goodput = 1;
  expect_schema("serve", served, metrics, static_cast<const serving::Metrics*>(&metrics), machine);
  FlitReport flit;
  expect_schema("flit", flit);
  flit.saturation.emplace();
  flit.curve.resize(1);
  flit.curve[0].classes.resize(2);
  expect_schema("flit", flit);
  diagnose::Diagnosis diagnosis;
  diagnosis.findings.emplace_back();
  expect_schema("diagnose", diagnosis);
  study::Explanation explanation;
  explanation.run = run;
  expect_schema("explain", explanation);
}

}  // namespace
}  // namespace orrery::report
