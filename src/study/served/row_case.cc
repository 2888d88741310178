// SPDX-License-Identifier: Apache-2.0
#include "study/served/row_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/collect.h"
#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "serving/step/step_cost.h"

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

void check_histogram(const study::ServedRequests& requests, const std::string& where,
                     Error& error) {
  if (requests.output_counts.empty()) {
    return;
  }
  double all = 0;
  bool numbers = true;
  for (const std::string_view count : split_at(requests.output_counts, ' ')) {
    const auto value = parse_number(count);
    numbers = numbers && value && *value >= 0 && *value <= kMostTokens;
    all += numbers ? *value : 0;
  }
  if (!numbers || all <= 0) {
    error.add({where, "requests.output_counts", requests.output_counts,
               "numbers from 0 on by spaces, some above 0"});
  }
  const auto counts = static_cast<std::int64_t>(split_at(requests.output_counts, ' ').size());
  if (requests.output_bins != 0 && requests.output_bins < counts) {
    error.add({where, "requests.output_bins", std::to_string(requests.output_bins),
               fmt::format("at least the {} bins of output_counts, or 0", counts)});
  }
  if (!(requests.output_low >= 0 && requests.output_high >= requests.output_low &&
        requests.output_high <= kMostTokens)) {
    error.add({where, "requests.output_high", std::to_string(requests.output_high),
               "output_low to 1e9 tokens"});
  }
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
  require(requests.concurrency >= 0 && requests.concurrency <= kMostRequests,
          "requests.concurrency", static_cast<double>(requests.concurrency), "0 to 10,000,000");
  require(requests.rounds >= 0 && requests.rounds <= 1e3, "requests.rounds", requests.rounds,
          "0 to 1000");
  require(requests.least > 0 && requests.least <= 1, "requests.least", requests.least,
          "a share above 0, at most 1");
  check_histogram(requests, where, error);
}

}  // namespace

Result<RowCase> row_case(const std::vector<study::Setting>& settings) {
  RowCase row;
  Error error;
  for (const study::Setting& setting : settings) {
    if (setting.field == "engine") {
      collect_into(row.engine, serving::load_engine(setting.value), error);
    }
  }
  for (const study::Setting& setting : settings) {
    apply(setting, row, error);
  }
  if (row.requests.count == 0 && row.requests.rounds == 0) {
    for (const std::string_view count : split_at(row.requests.output_counts, ' ')) {
      row.requests.count += std::llround(std::clamp(parse_number(count).value_or(0), 0.0, 1e6));
    }
  }
  if (row.requests.rounds > 0) {
    row.requests.count =
        std::llround(std::min(static_cast<double>(kMostRequests),
                              row.requests.rounds * static_cast<double>(row.requests.concurrency)));
  }
  if (error.empty()) {
    check_range(row.requests, settings.empty() ? "" : settings.back().where, error);
    // As a file would be: its ranges.
    collect(parse_config(serving::to_yaml(row.engine), "engine", ConfigSyntax::yaml)
                .and_then([](const ConfigNode& node) { return serving::parse_engine(node); }),
            error);
  }
  return or_mistakes(std::move(row), std::move(error));
}

namespace {

/// Answers drawn from a histogram: a bin by its number of answers, then equally within it.
std::vector<std::int64_t> drawn_answers(const study::ServedRequests& described) {
  std::vector<double> counts =
      mapped(split_at(described.output_counts, ' '),
             [&](const std::string_view count) { return parse_number(count).value_or(0); });
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto bins = described.output_bins > 0 ? static_cast<double>(described.output_bins)
                                              : static_cast<double>(counts.size());
  const double width = (described.output_high - described.output_low) / bins;
  std::vector<std::int64_t> answers(static_cast<std::size_t>(described.count));
  // The k-th of n quantiles, in an order that spreads them: k steps by a share that is far from all
  // fractions of small numbers (the golden section), so that any stretch has the whole histogram.
  constexpr double kGolden = 0.6180339887498949;
  double at = 0.5;
  for (std::int64_t& answer : answers) {
    at = std::fmod(at + kGolden, 1.0);
    double rest = at * all;
    std::size_t bin = 0;
    while (bin + 1 < counts.size() && rest >= counts[bin]) {
      rest -= counts[bin++];
    }
    const double within = counts[bin] > 0 ? std::min(1.0, rest / counts[bin]) : 0;
    const double tokens = described.output_low + width * (static_cast<double>(bin) + within);
    answer = std::max<std::int64_t>(1, std::llround(tokens));
  }
  return answers;
}

/// Lengths from `least` times the longest on.
requests::Length lengths(double longest, double least) {
  const double most = std::max(1.0, std::round(longest));
  return least < 1 ? requests::Length{.kind = requests::Length::Kind::uniform,
                                      .first = std::max(1.0, std::round(least * most)),
                                      .second = most}
                   : requests::Length{.first = most};
}

}  // namespace

std::vector<requests::Request> requests_of(const study::ServedRequests& described) {
  const bool at_once = described.rate == 0;
  std::vector<requests::Request> requests =
      requests::generate({.arrival = at_once ? requests::Arrival::infinite : described.arrival,
                          .rate = at_once ? 1 : described.rate,
                          .input = lengths(described.input, described.least),
                          .output = lengths(static_cast<double>(described.output), described.least),
                          .count = described.count});
  const std::int64_t prompts = described.prompts * described.users;
  const std::vector<std::int64_t> answers =
      described.output_counts.empty() ? std::vector<std::int64_t>() : drawn_answers(described);
  std::uint64_t number = 0;
  for (requests::Request& request : requests) {
    if (!answers.empty()) {
      request.output = answers[number];
    }
    if (prompts > 0) {
      request.ids = {number % static_cast<std::uint64_t>(prompts) + 1};
      request.id_tokens = request.shared = request.input;
    }
    ++number;
  }
  return requests;
}

std::string disagreement(const study::Agreement& agreement,
                         const std::function<std::string_view(const std::string&)>& cell) {
  const double stated = parse_number(cell(agreement.column)).value_or(0);
  double product = agreement.scale;
  std::string names;
  for (const std::string& column : agreement.product) {
    product *= parse_number(cell(column)).value_or(0);
    names += (names.empty() ? "" : " and ") + column;
  }
  if (!(stated > 0 && product > 0)) {
    return "";
  }
  const double factor = std::max(stated / product, product / stated);
  return factor <= agreement.within
             ? ""
             : fmt::format("{}: found {:.6g}, where {} say {:.6g}: {:.2f} times, more than {}",
                           agreement.column, stated, names, product, factor, agreement.within);
}

Result<zoo::Model> named_model(const std::string& of_row) {
  auto model = zoo::load_model(of_row);
  std::string name = of_row;
  for (const std::string_view format : {"-FP8", "-NVFP4", "-FP4", "-INT4", "-MXFP4", "-BF16"}) {
    if (name.ends_with(format)) {
      name.resize(name.size() - format.size());
    }
  }
  auto of_hub = model ? model : zoo::load_model(name);
  return of_hub ? std::move(of_hub) : std::move(model);
}

Result<RowParts> parts_of(const RowCase& row, const machine::Machine& machine) {
  auto model = named_model(row.model);
  if (!model) {
    return fail(std::move(model.error()));
  }
  if (row.machine.empty()) {
    return RowParts{std::move(*model), machine};
  }
  auto named = machine::load_machine(row.machine);
  if (!named) {
    return fail(std::move(named.error()));
  }
  return RowParts{std::move(*model), std::move(*named)};
}

Result<serving::Run> serve_case(const RowCase& row, const RowParts& parts,
                                const std::vector<requests::Request>& requests) {
  return serving::serve(parts.model, parts.machine, row.engine, requests,
                        {.max_concurrency = row.requests.concurrency});
}

Result<Bytes> weights_of(const RowCase& row, const RowParts& parts) {
  const serving::Engine engine =
      serving::completed(row.engine, parts.machine, parts.model.max_positions);
  return step::StepCost::make(parts.model, parts.machine, serving::step_options(engine))
      .map([](const step::StepCost& cost) { return cost.weights_per_device(); });
}

}  // namespace orrery::served
