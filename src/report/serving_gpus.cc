// SPDX-License-Identifier: Apache-2.0
#include "report/serving_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/csv.h"
#include "report/json_writer.h"
#include "report/timing.h"
#include "serving/launch_line.h"

namespace orrery::report {
namespace {

using serving::GpuChoice;
using serving::GpusFound;

constexpr std::array<const char*, 3> kFrameworks{"vllm", "sglang", "trtllm"};

/// Returns the first with the lowest price; null: nobody has one.
const GpuChoice* cheapest(const GpusFound& found) {
  const GpuChoice* best = nullptr;
  for (const GpuChoice& choice : found.choices) {
    if (choice.per_hour > Money(0) && (best == nullptr || choice.per_hour < best->per_hour)) {
      best = &choice;
    }
  }
  return best;
}

/// Returns the line of one engine; who balances several is not its matter.
std::string launch(const char* framework, const GpuChoice& choice, const std::string& model) {
  serving::Engine engine = choice.layout.engine;
  engine.replicas = 1;
  engine.router = serving::Router::round_robin;
  return serving::export_engine(framework, engine, model)
      .map([](const serving::LaunchLine& line) { return line.text; })
      .value_or("");
}

template <class Visit>
void visit_choice(const GpuChoice& choice, Visit visit) {
  const serving::Layout& layout = choice.layout;
  visit("machine", layout.machine);
  visit("format", layout.format.empty() ? std::string("engine's") : layout.format);
  visit("tp", layout.engine.tp);
  visit("dp", layout.engine.dp);
  visit("ep", layout.engine.ep);
  visit("replicas", layout.engine.replicas);
  visit("gpus", layout.devices);
  visit("usd_per_hour", choice.per_hour.value());
  visit("attainment", choice.attained);
  visit("ttft_p99_s", to_seconds(choice.metrics.ttft.p99));
  visit("tpot_p99_s", to_seconds(choice.metrics.tpot.p99));
  visit("output_tokens_per_s", choice.metrics.output_tokens_per_s);
  if (choice.metrics.cost_per_million_tokens) {
    visit("cost_per_million_tokens", choice.metrics.cost_per_million_tokens->value());
  }
}

std::string replicas_of(const GpuChoice& choice) {
  return fmt::format("{} x {}", choice.layout.engine.replicas, choice.layout.name());
}

std::string headline(const char* what, const GpuChoice& choice) {
  return fmt::format("{:<17} {} GPUs: {}{}\n", what, choice.layout.devices, replicas_of(choice),
                     choice.per_hour > Money(0)
                         ? fmt::format(", {:.2f} USD/h", choice.per_hour.value())
                         : std::string());
}

}  // namespace

std::string serving_gpus_text(const GpusFound& found, const std::string& model,
                              const serving::PlanSearch& search) {
  std::string text = fmt::format("{} at {:.4g} requests/s, limits kept by at least {:.4g} %\n\n",
                                 model, search.rate, 100 * search.attainment);
  text += headline("Fewest GPUs", found.choices.front());
  const GpuChoice* const cheap = cheapest(found);
  text += cheap != nullptr
              ? headline("Cheapest", *cheap)
              : std::string("Cheapest          unknown: no machine has a price (--price)\n");
  text += fmt::format("\n{:<40} {:>5} {:>9} {:>12} {:>12} {:>8} {:>8}\n", "engines", "GPUs",
                      "USD/h", "TTFT p99 ms", "TPOT p99 ms", "kept %", "$/Mtok");
  for (const GpuChoice& choice : found.choices) {
    const auto& cost = choice.metrics.cost_per_million_tokens;
    text += fmt::format(
        "{:<40} {:>5} {:>9} {:>12.1f} {:>12.2f} {:>8.2f} {:>8}\n", replicas_of(choice),
        choice.layout.devices,
        choice.per_hour > Money(0) ? fmt::format("{:.2f}", choice.per_hour.value()) : "-",
        1e3 * to_seconds(choice.metrics.ttft.p99), 1e3 * to_seconds(choice.metrics.tpot.p99),
        100 * choice.attained, cost ? fmt::format("{:.3g}", cost->value()) : "-");
  }
  if (!found.losers.empty()) {
    text += "\nWithout a place there:\n";
  }
  for (const serving::Loser& loser : found.losers) {
    text += fmt::format("{:<40} {}\n", found.layouts[loser.layout].name(), loser.reason);
  }
  text += "\nOne engine of the fewest:\n";
  for (const char* framework : kFrameworks) {
    text += launch(framework, found.choices.front(), model) + "\n";
  }
  return text + fmt::format("\n{} layouts, {} runs, {:.2f} s\n", found.layouts.size(), found.runs,
                            found.wall_s);
}

std::string serving_gpus_json(const GpusFound& found, const std::string& model,
                              const serving::PlanSearch& search) {
  return json_text([&](JsonWriter& json) {
    const auto write = [&](std::string_view name, const auto& value) {
      json.key(name).value(value);
    };
    const auto write_choice = [&](const GpuChoice& choice) {
      json.begin_object();
      visit_choice(choice, write);
      json.key("launch").begin_object();
      for (const char* framework : kFrameworks) {
        json.key(framework).value(launch(framework, choice, model));
      }
      json.end_object();
      json.end_object();
    };
    json.begin_object();
    json.key("search").value("gpus").key("model").value(model).key("rate").value(search.rate);
    json.key("fewest");
    write_choice(found.choices.front());
    if (const GpuChoice* const cheap = cheapest(found)) {
      json.key("cheapest");
      write_choice(*cheap);
    }
    json.key("choices").array(found.choices,
                              [&](const GpuChoice& choice) { write_choice(choice); });
    json.key("losers").array(found.losers, [&](const serving::Loser& loser) {
      const serving::Layout& layout = found.layouts[loser.layout];
      json.begin_object();
      write("machine", layout.machine);
      write("format", layout.format);
      write("tp", layout.engine.tp);
      write("reason", loser.reason);
      json.end_object();
    });
    write("runs", found.runs);
    write_timing(json, found.wall_s);
    json.end_object();
  });
}

std::string serving_gpus_csv(const GpusFound& found) {
  std::string text;
  for (const GpuChoice& choice : found.choices) {
    std::vector<std::string> names;
    std::vector<std::string> values;
    visit_choice(choice, [&](std::string_view name, const auto& value) {
      names.emplace_back(name);
      values.push_back(fmt::format("{}", value));
    });
    text += (text.empty() ? csv_line(names) : "") + csv_line(values);
  }
  return text;
}

}  // namespace orrery::report
