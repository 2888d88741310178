// SPDX-License-Identifier: Apache-2.0
/// The run-plan half of report/goodput.h, and the whole run beside a step (report/report.h).
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/format.h"
#include "report/goodput.h"
#include "report/report.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::report {
namespace {

bool has_failures(const goodput::Asked& asked) {
  return !asked.scenario.components.empty();
}

constexpr const char* kNoFailures =
    "no rate of failures was stated (--mtbf, --job-mtbf, --failures, --log): days are those of "
    "work "
    "alone";

std::string hypothetical_of(const study::Run& run) {
  return plan::hypothetical_hardware(run.plan.overlap_tensor, run.machine);
}

std::vector<double> bounds(const goodput::Band& band) {
  return {band.low, band.high};
}

std::string boundary_of(const study::RunPlan& plan) {
  return plan.price_devices > 1
             ? fmt::format("a whole node, of {} devices; energy is not added", plan.price_devices)
             : "one device with its share of the node; energy is not added";
}

void declare_checkpoint(const study::RunPlan& plan, Fields& fields) {
  fields.part("checkpoint", "what the machine's tiers make of one (--checkpoint-to)",
              plan.checkpoint, [&](const study::WrittenCheckpoint& one) {
                fields.field("bytes", "of the device that writes most", one.bytes);
                fields.field("holds_s", "the job waits", one.cost.holds);
                fields.field("persists_s", "from there until it is durable", one.cost.persists);
              });
}

void declare_price(const study::Run& run, const study::RunPlan& plan, Fields& fields) {
  fields.nullable("money", "dollars; null where no price is known", plan.money);
  fields.object("price", "what the money rests on", [&] {
    fields.nullable("per_hour", "of one device",
                    plan.money ? std::optional(run.machine.device.price_per_hour) : std::nullopt);
    fields.field("currency", "USD", "USD");
    fields.field("boundary", "what the price covers", boundary_of(plan));
    fields.nullable("year", "that the source names",
                    plan.price_year > 0 ? std::optional(plan.price_year) : std::nullopt);
    fields.field("source", "where it comes from, or why there is none", plan.price_source);
  });
}

}  // namespace

void declare(const study::Run& run, const std::optional<study::RunPlan>& whole, Fields& fields) {
  declare(run, fields);
  fields.part("whole_run", "a run of so many tokens (--tokens)", whole,
              [&](const study::RunPlan& plan) { declare(plan, fields); });
}

void declare(const study::RunPlan& plan, Fields& fields) {
  fields.field("tokens", "to train on", plan.tokens);
  fields.field("steps", "tokens over those of a step", plan.steps);
  fields.field("days", "of work alone, without stops", plan.days.mean);
  const auto number = [](const auto& quantity) {
    return quantity ? std::optional(quantity->value()) : std::nullopt;
  };
  fields.perhaps("energy_j", "of all devices; missing without their power", number(plan.energy));
  fields.nullable("money", "dollars; null without a price", number(plan.money));
  fields.field("price_source", "where the price is from, or why there is none", plan.price_source);
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
  if (plan.checkpoint) {
    const auto& [bytes, cost] = *plan.checkpoint;
    text += fmt::format("Checkpoint   {:>12}  of a device; holds the job for {}{}\n",
                        to_string(bytes), to_string(cost.holds),
                        cost.persists > Duration(0)
                            ? fmt::format(", is durable {} later", to_string(cost.persists))
                            : "");
  }
  text += plan.energy ? fmt::format("Energy       {:>12}  PUE {}\n", to_string(*plan.energy), pue)
                      : "Energy                  -  the machine states no power\n";
  text += plan.money ? fmt::format("Money        {:>12.0f}  USD at {} a device and hour ({})\n",
                                   plan.money->value(),
                                   to_string(run.machine.device.price_per_hour), plan.price_source)
                     : "Money                   -  " + plan.price_source + "\n";
  if (const std::string sentence = hypothetical_of(run); !sentence.empty()) {
    text += "note: " + sentence + "\n";
  }
  if (!has_failures(asked)) {
    return text + "note: " + kNoFailures + "\n";
  }
  for (const std::string& sentence : asked.assumed) {
    text += "note: " + sentence + "\n";
  }
  return text;
}

void declare(const study::Run& run, const study::RunPlan& plan, const goodput::Asked& asked,
             double pue, Fields& fields) {
  const bool fails = has_failures(asked);
  fields.field("model", "name", run.model.name);
  fields.field("machine", "name", run.machine.name);
  fields.field("devices", "of the job", run.devices);
  const std::string hypothetical = hypothetical_of(run);
  fields.when(!hypothetical.empty(), "hypothetical", kHypothetical, hypothetical);
  fields.field("tokens", "to train on", plan.tokens);
  fields.field("steps", "of the plan's batch", plan.steps);
  fields.field("step_time_s", "of one step", run.timeline.step_time);
  fields.field("days", "until the tokens are trained on, mean of the lives", plan.days.mean);
  fields.values("days80", {"80 % of the lives end between these", "days"}, bounds(plan.days));
  fields.field("goodput", "work alone / days", plan.goodput);
  fields.nullable("failures", "mean of the lives; null without a rate",
                  fails ? std::optional(plan.failures.mean) : std::nullopt);
  fields.values("failures80", {"80 % of the lives; empty without a rate", "stops"},
                fails ? bounds(plan.failures) : std::vector<double>{});
  fields.field("checkpoints", "mean of the lives; 0 without a rate", plan.checkpoints.mean);
  fields.field("interval_s", "work between two checkpoints; the best is whole steps",
               plan.interval);
  declare_checkpoint(plan, fields);
  fields.nullable("energy_j", "null where the machine states no power", plan.energy);
  fields.field("pue", "energy of the site for each joule of the devices", pue);
  declare_price(run, plan, fields);
  fields.values("assumed", {"a sentence for each number that nobody stated", "a sentence"},
                fails ? asked.assumed : std::vector<std::string>{kNoFailures});
}

}  // namespace orrery::report
