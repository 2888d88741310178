// SPDX-License-Identifier: Apache-2.0
#include "serving/host_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/collect.h"
#include "base/lists.h"
#include "base/reader.h"
#include "calibrate/minimize.h"

namespace orrery::serving {
namespace {

/// One column of a row; a mistake where it is no number from 0 on.
double number_of(const CsvTable& table, std::size_t row, std::string_view column, Error& error) {
  const std::string_view text = table.rows[row].cells[table.column(column).value()];
  const auto number = parse_number(text);
  constexpr double kMost = 1e9;
  if (!number || *number < 0 || *number > kMost) {
    error.add({table.where(table.rows[row]), std::string(column), std::string(text),
               "a number from 0 to 1e9"});
    return 0;
  }
  return *number;
}

double clipped_log(Time simulated, Time measured) {
  if (simulated <= Time(0) || measured <= Time(0)) {
    return calibrate::kLargestError;
  }
  return std::min(calibrate::kLargestError, std::abs(std::log(simulated / measured)));
}

HostErrors errors_of(const Run& run, const std::vector<MeasuredRequest>& measured) {
  HostErrors errors;
  double answers = 0;
  const std::size_t count = std::min(run.requests.size(), measured.size());
  for (std::size_t i = 0; i < count; ++i) {
    errors.ttft += clipped_log(run.requests[i].ttft(), measured[i].ttft);
    if (run.requests[i].output > 1 && measured[i].tpot > Time(0)) {
      errors.tpot += clipped_log(run.requests[i].tpot(), measured[i].tpot);
      ++answers;
    }
  }
  errors.ttft /= std::max<double>(1, static_cast<double>(count));
  errors.tpot /= std::max(1.0, answers);
  return errors;
}

}  // namespace

Result<std::vector<MeasuredRequest>> read_measured_requests(const CsvTable& table) {
  Error error;
  for (const char* column : {"input_tokens", "output_tokens", "sent_s", "ttft_s", "tpot_s"}) {
    if (!table.column(column)) {
      error.add({table.file + ":1", column, {}, "missing; `orrery serve --observe` writes it"});
    }
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const bool has_status = table.column("status").has_value();
  std::vector<MeasuredRequest> measured;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto number = [&](std::string_view column) {
      return number_of(table, row, column, error);
    };
    constexpr double kOk = 200;
    if (has_status && number("status") != kOk) {
      continue;
    }
    MeasuredRequest one;
    one.request.arrival = from_seconds(number("sent_s"));
    one.request.input = std::llround(number("input_tokens"));
    one.request.output = std::llround(number("output_tokens"));
    one.ttft = from_seconds(number("ttft_s"));
    one.tpot = from_seconds(number("tpot_s"));
    if (one.request.input >= 1 && one.request.output >= 1 && one.ttft > Time(0)) {
      measured.push_back(std::move(one));
    }
  }
  if (error.empty() && measured.empty()) {
    error.add({table.file, {}, {}, "no row has an answer with its times"});
  }
  std::stable_sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) {
    return a.request.arrival < b.request.arrival;
  });
  return or_mistakes(std::move(measured), std::move(error));
}

Result<HostFit> fit_host(const zoo::Model& model, const machine::Machine& machine,
                         const Engine& engine, const std::vector<MeasuredRequest>& measured) {
  auto server = Server::make(model, machine, engine);
  if (!server) {
    return fail(std::move(server.error()));
  }
  std::vector<requests::Request> requests = mapped(measured, &MeasuredRequest::request);
  // Cube roots are searched: half of the box is below an eighth of the longest times.
  const auto with = [&](std::span<const double> roots) {
    const auto time = [&](std::size_t i) {
      constexpr int kDigits = 3;
      return from_seconds(calibrate::rounded(roots[i] * roots[i] * roots[i], kDigits));
    };
    Engine host = engine;
    host.front_end = time(0);
    (engine.async ? host.gap : host.step) = time(1);
    host.per_request = time(2);
    return host;
  };
  const auto errors = [&](const Engine& host) {
    server->take_host(host);
    return errors_of(server->run(requests), measured);
  };
  // Up to 0.5 s, 20 ms and 1 ms.
  constexpr std::array<calibrate::Bounds, 3> kBox{{{0, 0.794}, {0, 0.272}, {0, 0.1}}};
  const std::array<double, 3> start{std::cbrt(to_seconds(engine.front_end)),
                                    std::cbrt(to_seconds(engine.async ? engine.gap : engine.step)),
                                    std::cbrt(to_seconds(engine.per_request))};
  // The front end delays all alike, so that times between tokens are those of the step's and the
  // requests' host alone: these are found first, then all three near them.
  constexpr int kGenerations = 10;
  const std::array<calibrate::Bounds, 2> of_steps{kBox[1], kBox[2]};
  const calibrate::Minimum steps = calibrate::minimize(
      [&](std::span<const double> at) {
        return errors(with(std::array<double, 3>{start[0], at[0], at[1]})).tpot;
      },
      of_steps, std::array<double, 2>{start[1], start[2]}, 2 * kGenerations);
  constexpr double kPart = 0.05;    // of a root that was found, to either side of it
  constexpr double kLeast = 0.005;  // of the box, for roots near 0
  std::array<calibrate::Bounds, 3> near = kBox;
  for (std::size_t i = 1; i < near.size(); ++i) {
    const double at = steps.at[i - 1];
    const double away = kPart * at + kLeast * kBox[i].high;
    near[i] = {std::max(kBox[i].low, at - away), std::min(kBox[i].high, at + away)};
  }
  const calibrate::Minimum best = calibrate::minimize(
      [&](std::span<const double> at) {
        const HostErrors found = errors(with(at));
        return found.ttft + found.tpot;
      },
      near, std::array<double, 3>{start[0], steps.at[0], steps.at[1]}, kGenerations);
  HostFit fit{.engine = with(best.at), .before = errors(engine), .after = {}};
  fit.after = errors(fit.engine);
  fit.requests = static_cast<std::int64_t>(measured.size());
  return fit;
}

}  // namespace orrery::serving
