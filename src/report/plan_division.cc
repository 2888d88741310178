// SPDX-License-Identifier: Apache-2.0
#include "report/plan_division.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "base/format.h"
#include "planner/full/summary.h"
#include "report/run_table.h"

namespace orrery::report {
namespace {

using advice::Arrangement;
using advice::WorkShare;

constexpr double kBillion = 1e9;

std::string_view unit_of(full::Objective objective) {
  return objective == full::Objective::cost               ? "USD"
         : objective == full::Objective::tokens_per_joule ? "J"
                                                          : "s";
}

/// Devices that no model has.
std::int64_t idle(const DivisionReport& report, const Arrangement& apart) {
  return std::accumulate(
      apart.shares.begin(), apart.shares.end(), report.devices,
      [](std::int64_t left, const WorkShare& share) { return left - share.devices; });
}

std::string arrangement_lines(const DivisionReport& report, const Arrangement& one, bool apart) {
  const char* how = apart ? "Apart, all at once" : "In turn, each on all devices";
  if (one.shares.empty()) {
    return fmt::format("{}: {}\n", how,
                       report.ended_early ? "not known, the search was ended early"
                       : apart            ? "no division has a plan that fits for every model"
                                          : report.division.missing.to_string());
  }
  std::string text = fmt::format("{}: the last ends after {}", how, to_string(one.end));
  if (report.objective != full::Objective::time) {
    text += fmt::format(", together {:.4g} {}", one.score, unit_of(report.objective));
  }
  if (const std::int64_t left = apart ? idle(report, one) : 0; left > 0) {
    text += fmt::format(", {} devices idle", grouped(left));
  }
  text += "\n";
  for (std::size_t i = 0; i < one.shares.size(); ++i) {
    const WorkShare& share = one.shares[i];
    text += fmt::format("  {:<20}{:>8} devices{:>11}{:>12.6f} s a step  {}\n", report.works[i].name,
                        grouped(share.devices), to_string(share.time),
                        to_seconds(share.best.step_time), full::summary(share.best.plan));
  }
  return text;
}

void declare_arrangement(const DivisionReport& report, const Arrangement& one, Fields& fields) {
  fields.field("runs", "whether every model has a plan that fits", !one.shares.empty());
  fields.field("end_s", "when the last model has its tokens", one.end);
  fields.field("score", "seconds, dollars or joules of all models, by the objective", one.score);
  std::size_t next = 0;
  fields.list("shares", {"in the order of the models", "one model's"}, one.shares,
              [&](const WorkShare& share) {
                const advice::Work work =
                    next < report.works.size() ? report.works[next] : advice::Work();
                ++next;
                fields.field("model", "as it was named", work.name);
                fields.field("tokens", "to train on", work.tokens);
                fields.field("devices", "that it has", share.devices);
                fields.field("time_s", "until it has its tokens", share.time);
                fields.field("step_time_s", "of its plan", share.best.step_time);
                fields.field("tokens_per_s", "of its plan", share.best.tokens_per_s);
                fields.field("mfu", "of its plan", share.best.mfu);
                fields.field("plan", "the best found", plan::to_yaml(share.best.plan));
              });
}

}  // namespace

std::string division_table(const DivisionReport& report) {
  std::string text = fmt::format("{} models on {} {}, ", report.works.size(),
                                 grouped(report.devices), report.machine);
  for (std::size_t i = 0; i < report.works.size(); ++i) {
    text += fmt::format("{}{} with {:.4g} billion tokens", i == 0 ? "" : ", ", report.works[i].name,
                        report.works[i].tokens / kBillion);
  }
  const advice::Division& found = report.division;
  const std::string apart = arrangement_lines(report, found.apart, true);
  const std::string in_turn = arrangement_lines(report, found.in_turn, false);
  text += "\n\n";
  return text + (found.best_is_apart() ? apart + "\n" + in_turn : in_turn + "\n" + apart);
}

void declare(const DivisionReport& report, Fields& fields) {
  fields.field("machine", "its name", report.machine);
  fields.field("devices", "of all", report.devices);
  fields.choice("objective", "by which arrangements are compared", report.objective);
  fields.choice("best", "the arrangement of the least score", {"apart", "in_turn"},
                report.division.best_is_apart() ? "apart" : "in_turn");
  fields.object("apart", "all models at once, each on devices of its own",
                [&] { declare_arrangement(report, report.division.apart, fields); });
  fields.object("in_turn", "one after the other, each on all devices",
                [&] { declare_arrangement(report, report.division.in_turn, fields); });
}

}  // namespace orrery::report
