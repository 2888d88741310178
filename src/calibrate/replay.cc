// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/collect.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/table_reader.h"
#include "calibrate/minimize.h"
#include "machine/device_groups.h"
#include "simulate/simulate.h"

namespace orrery::calibrate {
namespace {

constexpr std::string_view kFormat = "fp32";  // of the products of emitted programs
constexpr std::array<std::string_view, 9> kColumns{"what", "members", "batch", "m",      "n",
                                                   "k",    "bytes",   "count", "seconds"};

struct Row {
  std::string what;
  std::map<std::string_view, std::int64_t> numbers;
  Time time{0};

  /// Returns the time of a step that is its.
  Time of_step() const { return time * numbers.at("count"); }
};

/// The sorts of rows; false for one that is none.
bool take_row(const Row& row, ReplayTable& table) {
  const Bytes bytes(row.numbers.at("bytes"));
  if (row.what == "step") {
    table.step = row.time;
  } else if (row.what == "gemm") {
    table.products[std::string(kFormat)].push_back(
        {{row.numbers.at("batch"), row.numbers.at("m"), row.numbers.at("n"), row.numbers.at("k")},
         row.time,
         row.of_step()});
  } else if (row.what == "stream") {
    graph::Operator op{.name = "stream", .type = graph::DataType::fp32};
    op.bytes = bytes;
    table.streams.push_back({{std::move(op)}, row.time, row.of_step()});
  } else if (row.what == "message") {
    table.messages.push_back({bytes, row.time});
  } else if (const auto kind = value_of<graph::CollectiveKind>(row.what)) {
    table.collectives.push_back(
        {.kind = *kind, .members = row.numbers.at("members"), .bytes = bytes, .time = row.time});
    table.counts.push_back(row.numbers.at("count"));
  } else {
    return false;
  }
  return true;
}

double seconds_of(const topology::NetworkDimension& dimension, const MessageMeasurement& message) {
  return to_seconds(dimension.latency + dimension.message_overhead) +
         static_cast<double>(message.bytes.value()) /
             (dimension.bandwidth.value() * dimension.send_efficiency);
}

double median_error(const topology::NetworkDimension& dimension,
                    const std::vector<MessageMeasurement>& messages) {
  const std::vector<double> ratios = mapped(messages, [&](const MessageMeasurement& message) {
    return seconds_of(dimension, message) / to_seconds(message.time);
  });
  return fit_error(ratios).median;
}

void fit_messages(topology::NetworkDimension& dimension,
                  const std::vector<MessageMeasurement>& messages) {
  const topology::NetworkDimension given = dimension;
  const auto with = [&](std::span<const double> values) {
    topology::NetworkDimension made = given;
    made.message_overhead = from_seconds(values[0]);
    made.send_efficiency = values[1];
    return made;
  };
  const auto loss = [&](std::span<const double> values) {
    const topology::NetworkDimension trial = with(values);
    double sum = 0;
    for (const MessageMeasurement& message : messages) {
      sum += std::abs(std::log(seconds_of(trial, message) / to_seconds(message.time)));
    }
    return sum;
  };
  const std::array box{Bounds{0, 1e-3}, Bounds{0.01, 1}};
  // From where the largest message says the bandwidth and the smallest what is left: of such
  // different scales a search finds neither alone.
  const auto size = [](const MessageMeasurement& message) { return message.bytes; };
  const MessageMeasurement& most = *std::ranges::max_element(messages, {}, size);
  const MessageMeasurement& least = *std::ranges::min_element(messages, {}, size);
  const double per_byte = least.bytes < most.bytes
                              ? to_seconds(most.time - least.time) /
                                    static_cast<double>((most.bytes - least.bytes).value())
                              : 1 / (given.bandwidth.value() * given.send_efficiency);
  const std::array from{
      std::clamp(to_seconds(least.time - given.latency) -
                     static_cast<double>(least.bytes.value()) * per_byte,
                 box[0].low, box[0].high),
      per_byte > 0 ? std::clamp(1 / (per_byte * given.bandwidth.value()), box[1].low, box[1].high)
                   : box[1].high};
  dimension = with(minimize(loss, {box.begin(), box.end()}, {from.begin(), from.end()}).at);
}

/// Returns the collectives that take a hundredth of the time of all or more, for the others must
/// not decide a rate that those have to share. A machine has one price for reduce-scatters and
/// all-gathers of one size: each has their mean over the step.
std::vector<CollectiveMeasurement> decisive(const ReplayTable& table) {
  using enum graph::CollectiveKind;
  constexpr double kLeastShare = 0.01;
  const auto share = [&](std::size_t i) { return table.collectives[i].time * table.counts[i]; };
  const auto sharded = [](graph::CollectiveKind kind) {
    return kind == reduce_scatter || kind == all_gather;
  };
  Time all{0};
  for (std::size_t i = 0; i < table.collectives.size(); ++i) {
    all += share(i);
  }
  std::vector<CollectiveMeasurement> rows;
  for (std::size_t i = 0; i < table.collectives.size(); ++i) {
    CollectiveMeasurement row = table.collectives[i];
    Time time{0};
    std::int64_t count = 0;
    for (std::size_t j = 0; j < table.collectives.size(); ++j) {
      const CollectiveMeasurement& other = table.collectives[j];
      if (i == j || (sharded(row.kind) && sharded(other.kind) && row.members == other.members &&
                     row.bytes == other.bytes)) {
        time += share(j);
        count += table.counts[j];
      }
    }
    if (time >= all * kLeastShare) {
      row.time = time / count;
      rows.push_back(row);
    }
  }
  return rows;
}

/// Fits from what the last fit has found, while that closes half of the error: a host may be far
/// from what its machine file assumes, and a search keeps near to where it begins.
Result<CollectiveFit> calibrate_from_afar(const machine::Machine& machine,
                                          const std::vector<CollectiveMeasurement>& rows,
                                          const std::string& source) {
  constexpr int kMostFits = 4;
  auto best = calibrate_collectives(machine, rows, source);
  for (int i = 1; best && i < kMostFits; ++i) {
    auto next = calibrate_collectives(best->machine, rows, source);
    if (!next || next->after.mean > best->after.mean / 2) {
      break;
    }
    best = std::move(next);
  }
  return best;
}

/// Fits one sort after the other, each to the machine that the last has left.
class ReplayFitter {
 public:
  ReplayFitter(ReplayFit& fit, const ReplayTable& measured, const std::string& source)
      : fit_(fit), measured_(measured), source_(source) {}

  Result<void> products() {
    const auto& measured = measured_.products;
    const std::size_t rows = measured.empty() ? 0 : measured.begin()->second.size();
    const auto calibrate = [](const auto&... given) { return calibrate_gemm(given...); };
    return fit("products", rows, measured, calibrate, [&](const auto& made) {
      const auto error = [&](const machine::Machine& machine) {
        return gemm_error(std::string(kFormat), measured.begin()->second, machine.device).median;
      };
      return std::pair{error(fit_.machine), error(made.machine)};
    });
  }

  Result<void> streams() {
    const auto& measured = measured_.streams;
    return fit("streams", measured.size(), measured, calibrate_streams, [](const auto& made) {
      const KernelFit& only = made.fits.front();
      return std::pair{only.fitted_before.median, only.fitted_after.median};
    });
  }

  Result<void> collectives() {
    const auto& measured = measured_.collectives;
    auto fitted = fit("collectives", measured.size(), decisive(measured_), calibrate_from_afar,
                      [&](const auto& made) {
                        return std::pair{collective_error(measured, fit_.machine).median,
                                         collective_error(measured, made.machine).median};
                      });
    if (fitted) {
      warn_of_others();
    }
    return fitted;
  }

  Result<void> messages() {
    if (measured_.messages.empty()) {
      return {};
    }
    topology::NetworkDimension& innermost = fit_.machine.network.front();
    const double before = median_error(innermost, measured_.messages);
    fit_messages(innermost, measured_.messages);
    for (const char* const field : {"message_overhead", "send_efficiency"}) {
      fit_.machine.origins["network." + innermost.name + "." + field] = "measured: " + source_;
    }
    fit_.classes.push_back({"messages", measured_.messages.size(), before,
                            median_error(innermost, measured_.messages)});
    return {};
  }

 private:
  /// One rate serves all kinds of collectives, and a library may be slow at one of them.
  void warn_of_others() {
    constexpr double kFar = 0.5;
    for (const CollectiveMeasurement& each : decisive(measured_)) {
      if (collective_error({each}, fit_.machine).median > kFar) {
        fit_.warnings.push_back(fmt::format(
            "{} of {} took {}, far from what the other collectives say: their rate does not hold "
            "for it, and the step is off by as much",
            name_of(each.kind), to_string(each.bytes), to_string(each.time)));
      }
    }
  }

  /// Fits one sort of coefficients to its measured rows, and does nothing where there are none.
  /// `errors` returns the errors before and after the fit.
  template <class Measured, class Calibrate, class Errors>
  Result<void> fit(const char* sort, std::size_t rows, const Measured& measured,
                   Calibrate calibrate, Errors errors) {
    if (rows == 0) {
      return {};
    }
    auto made = calibrate(fit_.machine, measured, source_);
    if (!made) {
      return fail(std::move(made.error()));
    }
    const auto [before, after] = errors(*made);
    fit_.classes.push_back({sort, rows, before, after});
    fit_.machine = std::move(made->machine);
    fit_.warnings.insert(fit_.warnings.end(), made->warnings.begin(), made->warnings.end());
    return {};
  }

  ReplayFit& fit_;
  const ReplayTable& measured_;
  const std::string& source_;
};

Result<Time> step_on(const machine::Machine& machine, const graph::Workload& executed) {
  const auto timeline = simulate::simulate(executed, machine, {});
  return timeline ? Result<Time>(timeline->step_time) : fail(timeline.error());
}

}  // namespace

Result<ReplayTable> read_replay(const CsvTable& csv) {
  TableReader read(csv);
  read.need_all(kColumns);
  ReplayTable table;
  for (const CsvRow& line : read.rows()) {
    Row row{.what = std::string(read.text(line, "what")), .numbers = {}};
    for (const std::string_view name : {"members", "batch", "m", "n", "k", "bytes", "count"}) {
      row.numbers[name] =
          read.whole(line, name, name == "count" ? 1 : 0, std::numeric_limits<std::int64_t>::max());
    }
    row.time = from_seconds(read.number(line, "seconds", 1e-12, 1e6, "a number, 1e-12 to 1e6"));
    if (!take_row(row, table)) {
      read.mistake(line, "what", "step, gemm, stream, message or the name of a collective");
    }
  }
  if (read.ok() && table.step <= Time(0)) {
    read.add(Mistake{csv.file, "what", "", "a row 'step'"});
  }
  return or_mistakes(std::move(table), read.finish());
}

Result<ReplayFit> calibrate_replay(const machine::Machine& machine, const graph::Workload& executed,
                                   const ReplayTable& measured, const std::string& source) {
  auto fitted = machine::with_devices(machine, executed.ranks);
  if (!fitted) {
    return fail(fitted.error());
  }
  ReplayFit fit{
      .machine = std::move(*fitted), .measured = measured.step, .classes = {}, .warnings = {}};
  const auto before = step_on(fit.machine, executed);
  if (!before) {
    return fail(before.error());
  }
  fit.before = *before;
  ReplayFitter fitter(fit, measured, source);
  Error mistakes;
  // Both of the first two are of the general kernels.
  for (auto part : {&ReplayFitter::streams, &ReplayFitter::products, &ReplayFitter::collectives,
                    &ReplayFitter::messages}) {
    collect((fitter.*part)(), mistakes);
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const auto after = step_on(fit.machine, executed);
  if (!after) {
    return fail(after.error());
  }
  fit.after = *after;
  return fit;
}

}  // namespace orrery::calibrate
