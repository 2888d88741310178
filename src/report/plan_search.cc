// SPDX-License-Identifier: Apache-2.0
#include "report/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/lists.h"
#include "planner/full/summary.h"
#include "planner/full/unusual.h"
#include "report/found_plan.h"
#include "report/json_writer.h"
#include "report/lines.h"
#include "report/report.h"
#include "report/timing.h"
#include "report/trust.h"
#include "workload/plan/shard.h"
#include "workload/plan/tensor_overlap.h"
#include "workload/zoo/visible_share.h"

namespace orrery::report {
namespace {

Result<study::Trust> trust_of(const full::Task& task, const full::Found& found) {
  return study::trust_in(study::causes_of(task.model, found.plan, task.machine));
}

class SearchText : Lines {
 public:
  SearchText(const full::Task& task, const full::Answer& answer, const PlanDetails& details)
      : task_(task), answer_(answer), details_(details) {}

  std::string write() {
    line("{} on {} x {} ({}), {} sequences of {} tokens", task_.model.name, task_.devices,
         task_.machine.device.name, task_.machine.name, task_.fixed.plan.global_batch, tokens());
    if (answer_.top.empty()) {
      nothing_found();
    } else {
      best();
      runners_up();
    }
    counts();
    if (!answer_.top.empty()) {
      text_ += plan_details_table(details_, answer_.top.front());
    }
    return std::move(text_);
  }

 private:
  std::int64_t tokens() const { return plan::sequence_of(task_.model, task_.fixed.plan); }

  void nothing_found() {
    if (answer_.stopped) {
      line("Stopped before a plan had been simulated.");
      return;
    }
    line("{} The most frugal one found:",
         answer_.complete ? "No plan fits."
                          : "No plan that fits was found within --estimates and --bounds.");
    line("  {}", full::summary(answer_.frugal));
    for (const Mistake& mistake : answer_.missing.mistakes) {
      line("  {}", Error(mistake).to_string());
    }
    if (answer_.complete) {
      line("{}", details_.remedies.empty() ? "No change that was tried helps."
                                           : "What would help, the smallest change first:");
    }
    for (const std::string& remedy : remedy_lines(details_.remedies)) {
      line("  {}", remedy);
    }
  }

  void bound(const full::Found& best) {
    const std::optional<double> gap = answer_.gap();
    if (!gap) {
      line("  bound        none: stopped before all plans of the space had one");
    } else if (best.score == best.step_time) {
      line("  bound        {:.6f} s: no plan of the space simulates faster; gap {:.2f} %",
           to_seconds(answer_.bound), 100 * *gap);
    } else {
      line("  bound        {:.6g} J: no plan of the space takes less a step; gap {:.2f} %",
           best.energy->value() * (answer_.bound / best.score), 100 * *gap);
    }
  }

  void best() {
    const full::Found& best = answer_.top.front();
    line("");
    line("Best plan: {}", full::summary(best.plan));
    const double causal = zoo::visible_share(task_.model, tokens());
    line("  step time    {:.6f} s (simulated), {:.1f} % MFU{}, {:.0f} tokens/s",
         to_seconds(best.step_time), 100 * best.mfu,
         causal < 1 ? fmt::format(" ({:.1f} % by causal pairs)", 100 * best.mfu * causal) : "",
         best.tokens_per_s);
    if (best.unfused) {
      line(
          "  fused        {:.6f} s without fused communication, {:.2f} % more; the bound is theirs",
          to_seconds(*best.unfused), 100 * (*best.unfused / best.step_time - 1));
    }
    line("  memory       {} of the fullest device", to_string(best.memory));
    line("  trust        {}",
         trust_text(task_.machine, trust_of(task_, best), best.step_time, "\n               "));
    if (best.energy) {
      line("  energy       {:.6g} J a step, {:.6g} tokens/J", best.energy->value(),
           best.tokens_per_s * to_seconds(best.step_time) / best.energy->value());
    }
    if (best.cost_per_million_tokens) {
      line("  cost         {:.6g} $ per million tokens", best.cost_per_million_tokens->value());
    }
    bound(best);
    line("  by estimate  {}; finalists were estimated within {:.2f} % of their simulation",
         answer_.proved     ? "no plan is faster by more than 1 %"
         : answer_.complete ? "no plan is expected to be faster (--exhaustive looks at all)"
                            : "not all promising plans were looked at",
         100 * answer_.estimate_error);
    line("  fields       {}", fields(best.plan));
    frameworks();
    if (answer_.fastest) {
      const full::Found& fastest = *answer_.fastest;
      line("Fastest:   {}", full::summary(fastest.plan));
      line("  step time    {:.6f} s, {:.2f} % less, with {}", to_seconds(fastest.step_time),
           100 * (1 - fastest.step_time / best.step_time), means(fastest.plan));
    }
    line("");
  }

  static std::string means(const plan::Plan& plan) {
    return joined(full::unusual_means(plan), ", ", &full::UnusualMean::name);
  }

  /// Writes which frameworks run the plan, and for the others the fields that they do not run.
  void frameworks() {
    std::string runs;
    std::string others;
    for (const advice::Launchable& one : details_.frameworks) {
      const std::string lacks = joined(one.lacks, ", ", &interop::Remark::about);
      std::string& list = lacks.empty() ? runs : others;
      list += (list.empty()    ? ""
               : lacks.empty() ? ", "
                               : "; ") +
              one.framework + (lacks.empty() ? "" : " (" + lacks + ")");
    }
    line("  runs on      {}", runs.empty() ? "no framework with an export" : runs);
    if (!others.empty()) {
      line("  not on       {}", others);
    }
    if (details_.launch) {
      line("  launch       {}; read back by:", details_.launch->file);
      line("               {}", details_.launch->command);
    }
  }

  /// Returns the fields of a plan that are not as in another.
  static std::string fields(const plan::Plan& plan, const plan::Plan& other = {}) {
    std::string text;
    plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
      if (plan.*member != other.*member) {
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value_text(plan.*member));
      }
    });
    return text;
  }

  /// Returns the summary, with what tells the plan from a faster one of the same summary.
  std::string told_apart(std::size_t i) const {
    const plan::Plan& plan = answer_.top[i].plan;
    for (std::size_t before = 0; before < i; ++before) {
      if (full::summary(answer_.top[before].plan) == full::summary(plan)) {
        return full::summary(plan) + "; " + fields(plan, answer_.top[before].plan);
      }
    }
    return full::summary(plan);
  }

  void runners_up() {
    line("{:<3}{:>12}{:>9}{:>7}{:>12}  {:<20}{}", "", "step s", "", "MFU", "memory",
         "loses most in", "plan");
    for (std::size_t i = 0; i < answer_.top.size(); ++i) {
      const full::Found& found = answer_.top[i];
      line(
          "{:<3}{:>12.6f}{:>9}{:>7}{:>12}  {:<20}{}", i + 1, to_seconds(found.step_time),
          i == 0 ? ""
                 : fmt::format("{:+.2f} %", 100 * (found.score / answer_.top.front().score - 1)),
          fmt::format("{:.1f} %", 100 * found.mfu), to_string(found.memory),
          lost(found, answer_.top.front()),
          (i > 0 && i < details_.ties.size() && details_.ties[i].open ? "= " : "") + told_apart(i));
    }
    if (std::ranges::count(details_.ties, true, &advice::Tie::open) > 1) {  // the first is itself
      line("=  cannot be told from 1: published runs differ by more from what is predicted");
    }
    const std::vector<plan::Plan> plans = mapped(answer_.top, &full::Found::plan);
    for (const std::string& words : full::meanings(plans)) {
      line("  {}", words);
    }
    line("");
  }

  void counts() {
    const full::Counts& counts = answer_.counts;
    line("{} candidates: {} cannot be faster, {} not expected to be, {} do not fit, {} invalid",
         counts.all, counts.by_bound, counts.by_family, counts.by_memory, counts.invalid);
    line("{} estimated, {} simulated, {} left; {:.1f} s", counts.estimated, counts.simulated,
         counts.left, answer_.wall_s);
  }

  const full::Task& task_;
  const full::Answer& answer_;
  const PlanDetails& details_;
};

}  // namespace

std::string plan_search_table(const full::Task& task, const full::Answer& answer,
                              const PlanDetails& details) {
  return SearchText(task, answer, details).write();
}

std::string plan_search_json(const full::Task& task, const full::Answer& answer,
                             const PlanDetails& details) {
  const full::Found* const best = answer.top.empty() ? nullptr : &answer.top.front();
  const auto found = [](JsonWriter& json, const full::Found* plan) {
    plan != nullptr ? write_found(json, *plan) : void(json.null());
  };
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("model").value(task.model.name);
    json.key("machine").value(task.machine.name);
    json.key("devices").value(task.devices);
    found(json.key("best"), best);
    if (best == nullptr) {
      json.key("least_memory").begin_object();
      json.key("bytes").value(answer.least_memory.value());
      write_plan(json.key("plan"), answer.frugal);
      json.end_object();
    }
    found(json.key("fastest"), answer.fastest ? &*answer.fastest : nullptr);
    const bool of_time = best == nullptr || best->score == best->step_time;
    const std::optional<double> gap = answer.gap();
    json.key("bound_s").value(of_time && gap ? std::optional(answer.bound) : std::nullopt);
    json.key("gap").value(gap);
    json.key("proved").value(answer.proved);
    json.key("complete").value(answer.complete);
    json.key("stopped").value(answer.stopped);
    json.key("estimate_error").value(answer.estimate_error);
    if (best != nullptr) {
      JsonFields fields(json);
      fields.when(plan::is_tracked(best->plan.overlap_tensor), "hypothetical", kHypothetical,
                  plan::hypothetical_hardware(best->plan.overlap_tensor, task.machine));
      declare_trust(fields, task.machine, trust_of(task, *best), to_seconds(best->step_time));
    }
    json.key("candidates").begin_object();
    json.key("all").value(answer.counts.all);
    json.key("by_bound").value(answer.counts.by_bound);
    json.key("by_memory").value(answer.counts.by_memory);
    json.key("by_family").value(answer.counts.by_family);
    json.key("invalid").value(answer.counts.invalid);
    json.key("estimated").value(answer.counts.estimated);
    json.key("left").value(answer.counts.left);
    json.key("simulated").value(answer.counts.simulated);
    json.end_object();
    json.key("top").array(answer.top,
                          [&](const full::Found& one) { write_found(json, one, best); });
    write_plan_details(json, details, best);
    write_timing(json, answer.wall_s);
    json.end_object();
  });
}

}  // namespace orrery::report
