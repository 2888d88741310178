// SPDX-License-Identifier: Apache-2.0
#include "report/plan_details.h"

#include <fmt/format.h>

#include <utility>

#include "base/format.h"
#include "base/lists.h"
#include "planner/full/summary.h"
#include "report/found_plan.h"
#include "report/goodput.h"
#include "report/lines.h"
#include "report/plot.h"
#include "report/report.h"

namespace orrery::report {
namespace {

std::string amount(const advice::Remedy& remedy, std::int64_t value) {
  return remedy.changed == advice::Remedied::memory ? to_string(Bytes(value))
                                                    : std::to_string(value);
}

std::string scenario_text(const advice::Scenario& scenario) {
  return scenario.rate.empty()
             ? "as the file says"
             : fmt::format("{} {:+.0f} %", scenario.rate, 100 * (scenario.factor - 1));
}

class DetailsText : Lines {
 public:
  explicit DetailsText(const full::Found& best) : best_(best) {}

  void frontier(const std::vector<full::Found>& plans) {
    line("\nTime against memory: no other plan beats one of these in both");
    line("{:>12}{:>14}{:>11}  plan", "memory", "step s", "");
    for (const full::Found& plan : plans) {
      line("{:>12}{:>14.6f}{:>11}  {}", to_string(plan.memory), to_seconds(plan.step_time),
           more(plan), full::summary(plan.plan));
    }
  }

  void decisions(const std::vector<advice::Decision>& decisions) {
    line("\nWhat other choices cost: the best plan found with each, all else open");
    for (const advice::Decision& decision : decisions) {
      line("{} {}", decision.field, shown(decision.chosen));
      for (const advice::Alternative& other : decision.others) {
        line("  {:<16}{}", shown(other.value), outcome(other));
      }
    }
  }

  void regret(const advice::RegretTable& table) {
    line("\nRegret under rates 20 % off, least worst first");
    line("{:<3}{:>12}{:>10}  {:<24}plan", "", "step s", "worst", "in");
    for (std::size_t i = 0; i < table.plans.size(); ++i) {
      const advice::Regret& plan = table.plans[i];
      line("{:<3}{:>12.6f}{:>10}  {:<24}{}", i + 1, to_seconds(plan.plan.step_time),
           percent(plan.worst_regret()), scenario_text(table.scenarios[plan.worst]),
           full::summary(plan.plan.plan));
    }
    line("\n{:<24}{:>12}  best plan, regret of the others", "rate", "best s");
    for (std::size_t s = 0; s < table.scenarios.size(); ++s) {
      const advice::Scenario& scenario = table.scenarios[s];
      std::string row =
          fmt::format("{:<24}{:>12.6f}  {:<10}", scenario_text(scenario),
                      to_seconds(table.plans[scenario.best].times[s]), scenario.best + 1);
      for (const advice::Regret& plan : table.plans) {
        row += fmt::format("{:>8}", percent(plan.regrets[s]));
      }
      line("{}", row);
    }
  }

  void elastic(const advice::Elastic& elastic) {
    line("\nWith a node of {} devices less", elastic.node);
    if (elastic.fallbacks.empty()) {
      line("  nothing is left that a plan fits on");
    }
    for (const advice::Fallback& fallback : elastic.fallbacks) {
      line("  {}{} devices ({} idle), batch {}: {:.6f} s a step, {:.0f} tokens/s ({:+.2f} %)",
           fallback.part.empty() ? "" : "of " + fallback.part + ": ", fallback.devices,
           fallback.idle, fallback.batch, to_seconds(fallback.best.step_time),
           fallback.best.tokens_per_s, 100 * (fallback.best.tokens_per_s / best_.tokens_per_s - 1));
      const std::string changes = joined(fallback.changes);
      line("    {}", changes.empty() ? "the same plan" : changes);
    }
  }

  std::string take() && { return std::move(text_); }

 private:
  static std::string shown(const std::string& value) { return value.empty() ? "-" : value; }

  std::string more(const full::Found& plan) const {
    return fmt::format("{:+.2f} %", 100 * (plan.score / best_.score - 1));
  }

  std::string outcome(const advice::Alternative& other) const {
    if (other.best) {
      return fmt::format("{:>10}  {}{}", more(*other.best), full::summary(other.best->plan),
                         other.bound > best_.score ? "; its bound is above the best" : "");
    }
    return other.refused.empty()
               ? fmt::format("does not fit: {} at the least", to_string(other.least_memory))
               : "cannot be: " + other.refused;
  }

  const full::Found& best_;
};

void write_remedies(JsonWriter& json, const std::vector<advice::Remedy>& remedies) {
  json.key("remedies").objects(remedies, [&](const advice::Remedy& remedy) {
    json.key("changed").value(std::string(name_of(remedy.changed)));
    json.key("from").value(remedy.from);
    json.key("to").value(remedy.to);
    json.key("change").value(remedy.change());
    write_found(json.key("best"), remedy.best);
  });
}

void write_decisions(JsonWriter& json, const std::vector<advice::Decision>& decisions,
                     const full::Found& best) {
  json.key("decisions").objects(decisions, [&](const advice::Decision& decision) {
    json.key("field").value(decision.field);
    json.key("chosen").value(decision.chosen);
    json.key("others").objects(decision.others, [&](const advice::Alternative& other) {
      json.key("value").value(other.value);
      if (other.best) {
        json.key("more").value(other.best->score / best.score - 1);
        json.key("bound_above_best").value(other.bound > best.score);
        write_found(json.key("best"), *other.best);
      } else if (other.refused.empty()) {
        json.key("least_memory_bytes").value(other.least_memory.value());
      } else {
        json.key("refused").value(other.refused);
      }
    });
  });
}

void write_regret(JsonWriter& json, const advice::RegretTable& table) {
  json.key("regret").begin_object();
  json.key("scenarios").begin_array();
  for (std::size_t s = 0; s < table.scenarios.size(); ++s) {
    const advice::Scenario& scenario = table.scenarios[s];
    json.begin_object();
    json.key("rate").value(scenario.rate);
    json.key("factor").value(scenario.factor);
    json.key("best").value(scenario.best);
    json.key("best_step_time_s").value(to_seconds(table.plans[scenario.best].times[s]));
    json.end_object();
  }
  json.end_array();
  json.key("plans").objects(table.plans, [&](const advice::Regret& plan) {
    write_found(json.key("best"), plan.plan);
    json.key("worst_regret").value(plan.worst_regret());
    json.key("worst_scenario").value(plan.worst);
    json.key("regrets").values(plan.regrets);
  });
  json.end_object();
}

void write_frameworks(JsonWriter& json, const std::vector<advice::Launchable>& frameworks) {
  json.key("frameworks").objects(frameworks, [&](const advice::Launchable& one) {
    json.key("name").value(one.framework);
    json.key("runs").value(one.lacks.empty());
    json.key("lacks").objects(one.lacks, [&](const interop::Remark& remark) {
      json.key("field").value(remark.about);
      json.key("why").value(remark.sentence);
    });
  });
}

void write_launch(JsonWriter& json, const advice::Launch& launch) {
  json.key("launch").begin_object();
  json.key("file").value(launch.file);
  json.key("text").value(launch.text);
  json.key("read_back").value(launch.command);
  json.end_object();
}

void write_ties(JsonWriter& json, const std::vector<advice::Tie>& ties) {
  json.key("ties").objects(ties, [&](const advice::Tie& tie) {
    json.key("interval80").begin_array();
    json.value(tie.interval80.least).value(tie.interval80.most);
    json.end_array();
    json.key("open").value(tie.open);
  });
}

void write_elastic(JsonWriter& json, const advice::Elastic& elastic) {
  json.key("elastic").begin_object();
  json.key("node_devices").value(elastic.node);
  json.key("fallbacks").objects(elastic.fallbacks, [&](const advice::Fallback& fallback) {
    json.key("devices").value(fallback.devices);
    json.key("idle").value(fallback.idle);
    json.key("batch").value(fallback.batch);
    if (!fallback.part.empty()) {
      json.key("part").value(fallback.part);
    }
    write_found(json.key("best"), fallback.best);
    json.key("changes").values(fallback.changes);
  });
  json.end_object();
}

}  // namespace

std::vector<std::string> remedy_lines(const std::vector<advice::Remedy>& remedies) {
  std::vector<std::string> lines;
  lines.reserve(remedies.size());
  for (const advice::Remedy& remedy : remedies) {
    lines.push_back(
        fmt::format("{}: {} -> {} ({:.3g} times): {:.6f} s a step, {}", name_of(remedy.changed),
                    amount(remedy, remedy.from), amount(remedy, remedy.to), remedy.change(),
                    to_seconds(remedy.best.step_time), full::summary(remedy.best.plan)));
  }
  return lines;
}

std::string plan_details_table(const PlanDetails& details, const full::Found& best) {
  DetailsText text(best);
  if (details.frontier) {
    text.frontier(*details.frontier);
  }
  if (details.decisions) {
    text.decisions(*details.decisions);
  }
  if (details.regret) {
    text.regret(*details.regret);
  }
  if (details.elastic) {
    text.elastic(*details.elastic);
  }
  return std::move(text).take();
}

void write_plan_details(JsonWriter& json, const PlanDetails& details, const full::Found* best) {
  if (best == nullptr) {
    write_remedies(json, details.remedies);
    return;
  }
  if (!details.frameworks.empty()) {
    write_frameworks(json, details.frameworks);
    write_ties(json, details.ties);
  }
  if (details.launch) {
    write_launch(json, *details.launch);
  }
  if (details.frontier) {
    json.key("frontier").array(*details.frontier, [&](const full::Found& plan) {
      write_found(json, plan);
    });
  }
  if (details.decisions) {
    write_decisions(json, *details.decisions, *best);
  }
  if (details.regret) {
    write_regret(json, *details.regret);
  }
  if (details.elastic) {
    write_elastic(json, *details.elastic);
  }
  if (details.whole_run) {
    json.key("whole_run").begin_object();
    JsonFields fields(json);
    declare(*details.whole_run, fields);
    json.end_object();
  }
}

Result<std::string> frontier_plot(const std::string& title,
                                  const std::vector<full::Found>& frontier) {
  constexpr double kGibibyte = 1 << 30;
  CsvTable table{.file = "frontier",
                 .header = {"memory of the fullest device (GiB)", "step time (s)"},
                 .rows = {}};
  for (const full::Found& plan : frontier) {
    table.rows.push_back(
        {.line = static_cast<int>(table.rows.size()) + 1,
         .cells = {exact_text(static_cast<double>(plan.memory.value()) / kGibibyte),
                   exact_text(to_seconds(plan.step_time))}});
  }
  Plot plot;
  plot.title = title;
  plot.y_label = table.header[1];
  return fill(std::move(plot), table).map([](const Plot& filled) { return to_svg(filled); });
}

}  // namespace orrery::report
