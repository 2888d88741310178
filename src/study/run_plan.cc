// SPDX-License-Identifier: Apache-2.0
#include "study/run_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/format.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "machine/compute/device.h"
#include "study/energy.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"

namespace orrery::study {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr double kHoursPerDay = 24;
constexpr double kLeastGoodput = 0.01;

std::string price_source_of(const Run& run) {
  if (compute::is_unknown(run.machine.device.price_per_hour)) {
    return "the machine states no price_per_hour of a device (--price-per-hour)";
  }
  const auto origin = run.machine.origins.find("device.price_per_hour");
  return origin == run.machine.origins.end() ? "stated" : origin->second;
}

/// Returns the year that a price's source names: "on-demand list price of 2023, ..."; 0: none.
std::int64_t year_in(const std::string& source) {
  constexpr std::size_t kDigits = 4;
  const auto is_digit = [&](std::size_t at) {
    return at < source.size() && source[at] >= '0' && source[at] <= '9';
  };
  for (std::size_t i = 0; i + kDigits <= source.size(); ++i) {
    const auto year = parse_integer(std::string_view(source).substr(i, kDigits));
    if (year && *year / 100 == 20 && !is_digit(i - 1) && !is_digit(i + kDigits)) {
      return *year;
    }
  }
  return 0;
}

/// The best interval is the next whole number of steps, between which checkpoints are taken.
goodput::Scenario between_steps(goodput::Scenario scenario, Time step) {
  if (scenario.checkpoint.interval == Duration(0)) {
    const Duration one(to_seconds(step));
    scenario.checkpoint.interval = one * std::ceil(scenario.interval() / one);
  }
  return scenario;
}

void add_stops(RunPlan& plan, const goodput::Lives& lives, const goodput::Scenario& scenario) {
  plan.days = lives.days;
  plan.failures = lives.stops;
  plan.checkpoints = lives.checkpoints;
  plan.interval = scenario.interval();
  plan.goodput = plan.work.value() / kSecondsPerDay / plan.days.mean;
}

/// Work that is done, once or again, draws what a step does; all other time draws idle power.
std::optional<Energy> energy_of_run(const Run& run, const RunPlan& plan, Duration lost,
                                    double pue) {
  const auto step = energy_of(run);
  if (!step) {
    return std::nullopt;
  }
  const double busy = (plan.work + lost) / Duration(to_seconds(run.timeline.step_time));
  const double idle = std::max(0.0, plan.days.mean * kSecondsPerDay - (plan.work + lost).value());
  return Energy(pue * (step->total().value() * busy + run.machine.device.idle_power.value() *
                                                          static_cast<double>(run.devices) * idle));
}

/// Returns the bandwidth of the tier that a checkpoint goes to; 0 with a mistake.
Bandwidth tier_rate(const compute::Device& device, const char* field, const std::string& name,
                    Error& mistakes) {
  std::vector<std::string> lower;
  for (std::size_t i = 1; i < device.memory.size(); ++i) {
    if (device.memory[i].name == name) {
      return device.memory[i].bandwidth;
    }
    lower.push_back(device.memory[i].name);
  }
  mistakes.add({{},
                field,
                name,
                "a tier of device.memory below the first" + std::string(lower.empty() ? "" : ": ") +
                    orrery::joined(lower) + did_you_mean(name, lower)});
  return Bandwidth(0);
}

/// Returns the bytes of a stage that a device writes.
Bytes share_of_checkpoint(const Run& run, const footprint::StageMemory& stage, bool whole) {
  const plan::Plan& plan = run.plan;
  const Bytes parameters = stage[plan::MemoryCategory::parameters];
  const Bytes states = stage[plan::MemoryCategory::optimizer];
  if (whole) {
    return parameters + states;
  }
  const plan::Owner owner = run.model.experts > 0 ? plan::Owner::expert : plan::Owner::dense;
  const std::int64_t ranks =
      run.model.experts > 0 ? plan::expert_data_parallel(plan) : plan.dp * plan.cp;
  const std::int64_t shards = plan.zero < 3 ? 1 : plan.shard_params > 0 ? plan.shard_params : ranks;
  return parameters * std::min(shards, ranks) / ranks +
         states * std::min(plan::optimizer_shards(plan, owner), ranks) / ranks;
}

}  // namespace

Result<WrittenCheckpoint> written_checkpoint(const Run& run, const CheckpointPath& path) {
  Error mistakes;
  const compute::Device& device = run.machine.device;
  const Bandwidth to = tier_rate(device, "checkpoint_to", path.to, mistakes);
  const Bandwidth through =
      path.through.empty() ? to : tier_rate(device, "checkpoint_through", path.through, mistakes);
  const auto place = [&](const std::string& name) {
    return std::ranges::find(device.memory, name, &compute::MemoryTier::name);
  };
  if (mistakes.empty() && !path.through.empty() && place(path.through) >= place(path.to)) {
    mistakes.add({{},
                  "checkpoint_through",
                  path.through,
                  "a tier above checkpoint_to, as device.memory lists them"});
  }
  if (run.plan.offload_optimizer != plan::Offload::none) {
    mistakes.add({{},
                  "checkpoint_to",
                  path.to,
                  "offload_optimizer none, or checkpoint_cost: states off the device are not "
                  "copied from it"});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  WrittenCheckpoint written;
  for (const footprint::StageMemory& stage : run.memory) {
    written.bytes = std::max(written.bytes, share_of_checkpoint(run, stage, path.whole));
  }
  written.cost.holds = Duration(to_seconds(written.bytes / through));
  written.cost.persists = Duration(path.through.empty() ? 0 : to_seconds(written.bytes / to));
  return written;
}

Result<RunPlan> plan_run(const Run& run, double tokens, const goodput::Asked& asked,
                         std::int64_t seeds, double pue) {
  const double per_step = tokens_of(run);
  if (!(tokens >= per_step)) {
    return fail(Error(
        {{}, "tokens", exact_text(tokens), "at least those of one step, " + exact_text(per_step)}));
  }
  RunPlan plan;
  plan.tokens = tokens;
  plan.steps = tokens / per_step;
  plan.work = Duration(to_seconds(run.timeline.step_time) * plan.steps);
  plan.days = {plan.work.value() / kSecondsPerDay, plan.work.value() / kSecondsPerDay,
               plan.work.value() / kSecondsPerDay};
  Duration lost{0};
  if (!asked.scenario.components.empty()) {
    const goodput::Scenario scenario = between_steps(asked.scenario, run.timeline.step_time);
    const double share =
        goodput::expected_goodput(scenario.stops(), scenario.checkpoint.cost, scenario.interval());
    if (share < kLeastGoodput) {
      const goodput::Component& first = scenario.components.front();
      return fail(Error({{},
                         first.per == goodput::Unit::job ? "job_mtbf" : "mtbf",
                         to_string(goodput::mtbf_of(scenario.stops())),
                         "stops of the job further apart: it keeps " + percent(share) +
                             " of its time and would not end"}));
    }
    if (const auto ok = goodput::check_stops(scenario, plan.work / share, seeds); !ok) {
      return fail(ok.error());
    }
    const Duration forever(std::numeric_limits<double>::infinity());
    const goodput::Lives lives = goodput::run_lives(scenario, forever, plan.work, seeds);
    add_stops(plan, lives, scenario);
    lost = lives.time.lost / static_cast<double>(seeds);
  }
  plan.energy = energy_of_run(run, plan, lost, pue);
  plan.price_source = price_source_of(run);
  plan.price_year = year_in(plan.price_source);
  if (!compute::is_unknown(run.machine.device.price_per_hour)) {
    plan.money = run.machine.device.price_per_hour *
                 (plan.days.mean * kHoursPerDay * static_cast<double>(run.devices));
  }
  return plan;
}

tl::expected<double, std::string> parse_tokens(std::string_view text) {
  double factor = 1;
  for (const auto& [unit, value] : {std::pair{'K', 1e3}, std::pair{'M', 1e6}, std::pair{'B', 1e9},
                                    std::pair{'G', 1e9}, std::pair{'T', 1e12}}) {
    if (!text.empty() && text.back() == unit) {
      factor = value;
      text.remove_suffix(1);
      break;
    }
  }
  const auto number = parse_number(text);
  if (!number || !(*number > 0) || *number * factor > 1e18) {
    return tl::make_unexpected(std::string("a number of tokens such as '15T', '300B' or '1.5e12'"));
  }
  return *number * factor;
}

}  // namespace orrery::study
