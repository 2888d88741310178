// SPDX-License-Identifier: Apache-2.0
#include "study/served/row_case.h"

#include <algorithm>
#include <cmath>

#include "base/reader.h"

namespace orrery::served {
namespace {

constexpr std::int64_t kMostRequests = 10'000'000;
constexpr double kMostTokens = 1e9;

template <class T>
void take(const study::Setting& setting, T& into, Error& error) {
  if (auto value = parse_value<T>(setting.value)) {
    into = std::move(*value);
  } else {
    error.add({setting.where, setting.field, setting.value, value.error()});
  }
}

void apply(const study::Setting& setting, RowCase& row, Error& error) {
  if (setting.field == "model") {
    row.model = setting.value;
  } else if (setting.field == "machine") {
    row.machine = setting.value;
  }
  study::ServedRequests::fields([&](std::string_view name, auto member, std::string_view) {
    if (setting.field == "requests." + std::string(name)) {
      take(setting, row.requests.*member, error);
    }
  });
  serving::Engine::fields(
      [&](std::string_view section, std::string_view name, auto member, std::string_view) {
        if (setting.field == std::string(section) + "." + std::string(name)) {
          take(setting, row.engine.*member, error);
        }
      });
}

void check_range(const study::ServedRequests& requests, const std::string& where, Error& error) {
  const auto require = [&](bool ok, const char* field, double found, const char* expected) {
    if (!ok) {
      error.add({where, field, std::to_string(found), expected});
    }
  };
  require(requests.count >= 0 && requests.count <= kMostRequests, "requests.count",
          static_cast<double>(requests.count), "0 to 10,000,000");
  require(requests.rate >= 0 && requests.rate < 1e9, "requests.rate", requests.rate,
          "0 to 1e9 a second");
  require(requests.input >= 0 && requests.input <= kMostTokens, "requests.input", requests.input,
          "0 to 1e9 tokens");
  require(requests.output >= 0 && static_cast<double>(requests.output) <= kMostTokens,
          "requests.output", static_cast<double>(requests.output), "0 to 1e9 tokens");
  require(requests.prompts >= 0 && requests.prompts <= kMostRequests && requests.users >= 1 &&
              requests.users <= kMostRequests,
          "requests.prompts", static_cast<double>(requests.prompts), "0 to 10,000,000");
}

}  // namespace

Result<RowCase> row_case(const std::vector<study::Setting>& settings) {
  RowCase row;
  Error error;
  for (const study::Setting& setting : settings) {
    if (setting.field == "engine") {
      if (auto engine = serving::load_engine(setting.value)) {
        row.engine = std::move(*engine);
      } else {
        error.add(std::move(engine.error()));
      }
    }
  }
  for (const study::Setting& setting : settings) {
    apply(setting, row, error);
  }
  if (error.empty()) {
    check_range(row.requests, settings.empty() ? "" : settings.back().where, error);
    // As a file would be: its ranges.
    const auto checked =
        parse_config(serving::to_yaml(row.engine), "engine", ConfigSyntax::yaml)
            .and_then([](const ConfigNode& node) { return serving::parse_engine(node); });
    if (!checked) {
      error.add(checked.error());
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return row;
}

std::vector<requests::Request> requests_of(const study::ServedRequests& described) {
  const bool at_once = described.rate == 0;
  std::vector<requests::Request> requests =
      requests::generate({.arrival = at_once ? requests::Arrival::infinite : described.arrival,
                          .rate = at_once ? 1 : described.rate,
                          .count = described.count});
  const std::int64_t prompts = described.prompts * described.users;
  const double last = requests.empty() ? 0 : to_seconds(requests.back().arrival);
  const double scale =
      last > 0 ? static_cast<double>(described.count - 1) / (described.rate * last) : 1;
  std::uint64_t number = 0;
  for (requests::Request& request : requests) {
    request.arrival = request.arrival * scale;
    request.input = std::max<std::int64_t>(1, std::llround(described.input));
    request.output = described.output;
    if (prompts > 0) {
      request.ids = {number++ % static_cast<std::uint64_t>(prompts) + 1};
      request.id_tokens = request.shared = request.input;
    }
  }
  return requests;
}

double value_of_measure(study::Measure measure, const serving::Metrics& metrics) {
  switch (measure) {
    case study::Measure::ttft_s:
      return to_seconds(metrics.ttft.mean);
    case study::Measure::ttft_ms:
      return 1e3 * to_seconds(metrics.ttft.mean);
    case study::Measure::tpot_ms:
      return 1e3 * to_seconds(metrics.tpot.mean);
    case study::Measure::latency_s:
      return to_seconds(metrics.e2e.mean);
    case study::Measure::latency_ms:
      return 1e3 * to_seconds(metrics.e2e.mean);
    case study::Measure::output_tokens_per_s:
      return metrics.output_tokens_per_s;
    default:
      return 0;
  }
}

Result<serving::Run> serve_case(const RowCase& row, const machine::Machine& machine,
                                const std::vector<requests::Request>& requests) {
  auto model = zoo::load_model(row.model);
  if (!model) {
    return fail(std::move(model.error()));
  }
  machine::Machine own = machine;
  if (!row.machine.empty()) {
    auto named = machine::load_machine(row.machine);
    if (!named) {
      return fail(std::move(named.error()));
    }
    own = std::move(*named);
  }
  return serving::serve(*model, own, row.engine, requests);
}

}  // namespace orrery::served
