// SPDX-License-Identifier: Apache-2.0
/// The run-plan half of report/goodput.h, and the whole run beside a step (report/report.h).
#include <fmt/format.h>

#include "base/format.h"
#include "report/goodput.h"
#include "report/json_writer.h"
#include "report/report.h"

namespace orrery::report {
namespace {

bool has_failures(const goodput::Asked& asked) {
  return !asked.scenario.components.empty();
}

constexpr const char* kNoFailures =
    "no rate of failures was stated (--mtbf, --job-mtbf, --failures, --log): days are those of "
    "work "
    "alone";

void write_range(JsonWriter& json, std::string_view key, const goodput::Band& band) {
  json.key(key).begin_array().value(band.low).value(band.high).end_array();
}

void write_price(JsonWriter& json, const study::Run& run, const study::RunPlan& plan) {
  json.key("money");
  plan.money ? json.value(plan.money->value()) : json.number_text("null");
  json.key("price").begin_object();
  json.key("per_hour");
  plan.money ? json.value(run.machine.device.price_per_hour.value()) : json.number_text("null");
  json.key("currency").value("USD");
  json.key("boundary").value("one device with its share of the node; energy is not added");
  json.key("source").value(plan.price_source);
  json.end_object();
}

}  // namespace

void declare(const std::optional<study::RunPlan>& whole, Fields& fields) {
  fields.part("whole_run", "a run of so many tokens (--tokens)", whole,
              [&](const study::RunPlan& plan) {
                fields.field("tokens", "to train on", plan.tokens);
                fields.field("steps", "tokens over those of a step", plan.steps);
                fields.field("days", "of work alone, without stops", plan.days.mean);
                const auto number = [](const auto& quantity) {
                  return quantity ? std::optional(quantity->value()) : std::nullopt;
                };
                fields.perhaps("energy_j", "of all devices; missing without their power",
                               number(plan.energy));
                fields.perhaps("money", "dollars; missing without a price", number(plan.money));
                fields.field("price_source", "where the price is from, or why there is none",
                             plan.price_source);
              });
}

std::string run_plan_table(const study::Run& run, const study::RunPlan& plan,
                           const goodput::Asked& asked, double pue) {
  std::string text =
      fmt::format("{} on {} x {} ({}): {:.4g} tokens, {:.0f} steps of {}\n\n", run.model.name,
                  run.devices, run.machine.device.name, run.machine.name, plan.tokens, plan.steps,
                  to_string(run.timeline.step_time));
  text += fmt::format("Days         {:>12.2f}", plan.days.mean);
  text +=
      has_failures(asked)
          ? fmt::format("  80 %: {:.2f} to {:.2f}; work alone {:.2f}, goodput {}\n", plan.days.low,
                        plan.days.high, plan.work.value() / 86400, percent(plan.goodput))
          : "  of work alone\n";
  if (has_failures(asked)) {
    text += fmt::format("Failures     {:>12.1f}  80 %: {:.0f} to {:.0f}\n", plan.failures.mean,
                        plan.failures.low, plan.failures.high);
    text += fmt::format("Checkpoints  {:>12.0f}  one every {}\n", plan.checkpoints.mean,
                        to_string(plan.interval));
  }
  text += plan.energy ? fmt::format("Energy       {:>12}  PUE {}\n", to_string(*plan.energy), pue)
                      : "Energy                  -  the machine states no power\n";
  text += plan.money ? fmt::format("Money        {:>12.0f}  USD at {} a device and hour ({})\n",
                                   plan.money->value(),
                                   to_string(run.machine.device.price_per_hour), plan.price_source)
                     : "Money                   -  " + plan.price_source + "\n";
  if (!has_failures(asked)) {
    return text + "note: " + kNoFailures + "\n";
  }
  for (const std::string& sentence : asked.assumed) {
    text += "note: " + sentence + "\n";
  }
  return text;
}

std::string run_plan_json(const study::Run& run, const study::RunPlan& plan,
                          const goodput::Asked& asked, double pue) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("model").value(run.model.name);
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("tokens").value(plan.tokens);
    json.key("steps").value(plan.steps);
    json.key("step_time_s").value(to_seconds(run.timeline.step_time));
    json.key("days").value(plan.days.mean);
    write_range(json, "days80", plan.days);
    json.key("goodput").value(plan.goodput);
    json.key("failures");
    has_failures(asked) ? json.value(plan.failures.mean) : json.number_text("null");
    write_range(json, "failures80", plan.failures);
    json.key("checkpoints").value(plan.checkpoints.mean);
    json.key("interval_s").value(plan.interval.value());
    json.key("energy_j");
    plan.energy ? json.value(plan.energy->value()) : json.number_text("null");
    json.key("pue").value(pue);
    write_price(json, run, plan);
    json.key("assumed").begin_array();
    if (!has_failures(asked)) {
      json.value(kNoFailures);
    } else {
      for (const std::string& sentence : asked.assumed) {
        json.value(sentence);
      }
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery::report
