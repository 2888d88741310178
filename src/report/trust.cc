// SPDX-License-Identifier: Apache-2.0
#include "report/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "base/format.h"

namespace orrery::report {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::max();

/// A value is a rate where it has a limit, and a time with 0.
void declare_interval(Fields& fields, std::string_view name, std::string_view sentence,
                      const Result<study::Trust>& trust, double value, double limit) {
  std::vector<double> interval;
  if (trust && value > 0) {  // of what never came there is none
    const auto [least, most] = study::interval80(*trust, value, limit > 0);
    interval = {least, limit > 0 ? std::min(most, limit) : most};
  }
  fields.values(name, {sentence, "the least, then the most"}, interval);
}

void declare_parts(Fields& fields, const machine::Machine& machine,
                   const Result<study::Trust>& found) {
  const study::Trust trust = found ? *found : study::Trust{};
  const std::optional<std::string> problem =
      found ? std::nullopt : std::optional(found.error().to_string());
  const study::OriginCounts numbers = study::count_origins(machine);
  fields.object("numbers", "of the machine, by origin", [&] {
    fields.field("measured", "by measurements of this device", numbers.measured);
    fields.field("fitted", "to measurements", numbers.fitted);
    fields.field("stated", "by data sheets and users", numbers.stated);
    fields.field("inferred", "carried over from other machines, or assumed", numbers.inferred);
  });
  fields.perhaps("problem", "why there is no interval", problem);
  fields.field("kind", "kind of run", trust.causes.kind);
  fields.field("framework", "software of the run", trust.causes.framework);
  fields.field("coefficients", "origin of the kernels' coefficients", trust.causes.origin);
  fields.field("rows", "published rows that the error model was fitted to", trust.rows);
  fields.object("sigma", "standard deviations of the logarithm of the error, by cause", [&] {
    fields.field("kind", "of the kind of run", trust.sigma.kind);
    fields.field("framework", "of the software", trust.sigma.framework);
    fields.field("origin", "of the coefficients", trust.sigma.origin);
    fields.field("rest", "of everything else", trust.sigma.rest);
  });
  fields.list("nearest", {"published rows that are most alike", "a group of rows"}, trust.nearest,
              [&](const study::Validated& group) {
                fields.field("table", "of orrery validate", group.table);
                fields.field("machine", "that ran them", group.causes.machine);
                fields.field("framework", "that ran them", group.causes.framework);
                fields.field("rows", "of the group", group.rows);
                fields.field("median_error", "a share", group.median);
              });
  std::vector<double> p95;
  if (trust.p95) {
    p95 = {trust.p95->least, trust.p95->most};
  }
  fields.values(
      "p95_share",
      {"95th percentile of single steps over their median, which is what is predicted: the longest "
       "steps of runs on one H200 or H100; empty where it is not known",
       "on a busy device, then on one that waits for the host"},
      p95);
  fields.field("measure_next", "what narrows the interval most", trust.next);
}

/// A figure of a served run that published rows have too.
struct ServedFigure {
  Result<study::Trust> trust;
  double value = 0;
  bool rate = false;
  double scale = 1;       ///< of the text
  const char* line = "";  ///< of the text
  const char* key = "";
  double limit = kNoLimit;  ///< no engine has more
};

/// Returns the tokens a second that clients ask for, which no engine exceeds:
///
///   answers' tokens / (last sent - first sent)
///
/// There is no limit where clients wait for answers or all requests come at once.
double asked_tokens_per_s(const serving::Run& run, const serving::Metrics& m) {
  if (run.max_concurrency > 0 || run.requests.empty()) {
    return kNoLimit;
  }
  const auto [first, last] = std::ranges::minmax(run.requests, {}, &serving::Served::sent);
  const double seconds = to_seconds(last.sent - first.sent);
  return seconds > 0
             ? std::max(m.output_tokens_per_s, static_cast<double>(m.output_tokens) / seconds)
             : kNoLimit;
}

std::array<ServedFigure, 3> served_figures(const serving::Run& run, const serving::Metrics& m,
                                           const machine::Machine& machine) {
  const auto errors = study::ErrorModel::load();
  const auto trust = [&](study::Measure measure) {
    return errors.map([&](const study::ErrorModel& model) {
      return model.trust(study::causes_of(measure, run.engine.name, machine));
    });
  };
  return {{{trust(study::Measure::output_tokens_per_s), m.output_tokens_per_s, true, 1,
            "Output tokens/s of 80 % of such runs:", "interval80", asked_tokens_per_s(run, m)},
           {trust(study::Measure::ttft_s), to_seconds(m.ttft.mean), false, 1e3,
            "Mean TTFT (ms) of 80 % of them:", "ttft_interval80_s"},
           {trust(study::Measure::tpot_ms), to_seconds(m.tpot.mean), false, 1e3,
            "Mean TPOT (ms) of 80 % of them:", "tpot_interval80_s"}}};
}

}  // namespace

std::string trust_text(const machine::Machine& machine, const Result<study::Trust>& trust,
                       Time time, std::string_view between) {
  std::vector<std::string> parts;
  if (trust) {
    const auto [least, most] = study::interval80(*trust, to_seconds(time));
    parts.push_back(fmt::format("80 % of such runs take {} to {}", to_string(from_seconds(least)),
                                to_string(from_seconds(most))));
    if (trust->p95) {
      const auto step = [&](double share) {
        return to_string(from_seconds(to_seconds(time) * share));
      };
      parts.push_back(
          fmt::format("single steps: p50 {}, p95 {} ({} where kernels wait for the host)",
                      to_string(time), step(trust->p95->least), step(trust->p95->most)));
    }
  } else {
    parts.push_back("no interval: " + trust.error().to_string());
  }
  const study::OriginCounts numbers = study::count_origins(machine);
  parts.push_back(fmt::format("numbers of {}: {} measured, {} fitted, {} stated, {} inferred",
                              machine.name, numbers.measured, numbers.fitted, numbers.stated,
                              numbers.inferred));
  if (trust) {
    for (const study::Validated& group : trust->nearest) {
      parts.push_back(fmt::format("nearest: {} rows of {} on {}, {} off", group.rows, group.table,
                                  group.causes.machine, percent(group.median)));
    }
    parts.push_back("to narrow it: measure " + trust->next);
  }
  return fmt::format("{}", fmt::join(parts, between));
}

void declare_trust(Fields& fields, const machine::Machine& machine,
                   const Result<study::Trust>& found, double value, double limit) {
  declare_interval(fields, "interval80",
                   "what 80 % of such runs are within; empty without an error model", found, value,
                   limit);
  fields.object("trust", "how far the prediction can be trusted (docs/fidelity.md)",
                [&] { declare_parts(fields, machine, found); });
}

void declare_served_trust(Fields& fields, const serving::Run& run, const serving::Metrics& metrics,
                          const machine::Machine& machine) {
  for (const ServedFigure& one : served_figures(run, metrics, machine)) {
    if (one.rate) {
      declare_trust(fields, machine, one.trust, one.value, one.limit);
      continue;
    }
    declare_interval(fields, one.key, "what the mean of 80 % of such runs is within", one.trust,
                     one.value, 0);
  }
}

std::string served_trust_text(const serving::Run& run, const serving::Metrics& metrics,
                              const machine::Machine& machine) {
  std::string text = fmt::format("{:=^50}\n", " Trust ");
  for (const ServedFigure& one : served_figures(run, metrics, machine)) {
    if (!one.trust) {
      return text + one.trust.error().to_string() + "\n";
    }
    if (one.value <= 0) {
      text += one.rate ? "no interval: no token was answered\n" : "";
      continue;
    }
    const auto [least, most] = study::interval80(*one.trust, one.value, one.rate);
    text += fmt::format("{:<40} {:.4g} to {:.4g}{}\n", one.line, least * one.scale,
                        std::min(most, one.limit) * one.scale,
                        most > one.limit ? ", what clients ask for" : "");
    for (std::size_t i = 0; one.rate && i < one.trust->nearest.size(); ++i) {
      const study::Validated& group = one.trust->nearest[i];
      text += fmt::format("nearest: {} rows of {} on {}, {} off\n", group.rows, group.table,
                          group.causes.machine, percent(group.median));
    }
  }
  return text;
}

}  // namespace orrery::report
