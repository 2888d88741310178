// SPDX-License-Identifier: Apache-2.0
#include "report/astra_native.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/json_writer.h"

namespace orrery {
namespace {

using astra::RunResult;

constexpr std::int64_t kPicosecondsPerCycle = 1000;

std::int64_t cycles(Time time) {
  return time.value() / kPicosecondsPerCycle;
}

struct Summary {
  Time last{0};
  Time first = Time::max();
  Time exposed{0};
  Time computed{0};  ///< greatest
};

Summary summary_of(const RunResult& result) {
  Summary summary;
  for (const RunResult::Class& one : result.classes) {
    summary.last = std::max(summary.last, one.finish);
    summary.first = std::min(summary.first, one.finish);
    summary.exposed = std::max(summary.exposed, one.exposed);
    summary.computed = std::max(summary.computed, one.finish - one.exposed);
  }
  return summary;
}

double share(double seconds, Time of) {
  return of > Time(0) ? seconds / to_seconds(of) : 0;
}

double mean_share(const astra::DimensionUse& use, Time of) {
  return use.links > 0 ? share(use.total / use.links, of) : 0;
}

std::string row(const char* name, const std::optional<double>& compat, double native) {
  const std::string left = compat ? fmt::format("{:.0f}", *compat) : "-";
  const std::string ratio = compat && *compat > 0 ? fmt::format("{:.3f}", native / *compat) : "-";
  return fmt::format("{:<24}{:>16}{:>16.0f}{:>10}\n", name, left, native, ratio);
}

std::string rows(const NativeReport& report) {
  const Summary native = summary_of(report.native);
  const Summary compat = report.compat ? summary_of(*report.compat) : Summary{};
  const auto pair = [&](const char* name, Time Summary::*value) {
    std::optional<double> left;
    if (report.compat) {
      left = static_cast<double>(cycles(compat.*value));
    }
    return row(name, left, static_cast<double>(cycles(native.*value)));
  };
  return pair("cycles, last rank", &Summary::last) + pair("cycles, first rank", &Summary::first) +
         pair("exposed communication", &Summary::exposed);
}

std::string dimension_rows(const NativeReport& report) {
  const Time end = summary_of(report.native).last;
  std::string text = fmt::format("\n{:<12}{:<16}{:>6}{:>12}{:>12}{:>14}{:>12}\n", "dimension",
                                 "kind", "size", "GB/s", "latency", "busiest link", "all links");
  for (std::size_t d = 0; d < report.native.use.size(); ++d) {
    const NetworkDimension& dimension = report.network.dimensions[d];
    const astra::DimensionUse& use = report.native.use[d];
    text += fmt::format("{:<12}{:<16}{:>6}{:>12.1f}{:>9} ns{:>12.1f} %{:>10.1f} %\n",
                        dimension.name, name_of(dimension.kind), dimension.size,
                        dimension.bandwidth.value() * dimension.send_efficiency / 1e9,
                        cycles(dimension.latency), 100 * share(to_seconds(use.busiest), end),
                        100 * mean_share(use, end));
  }
  return text;
}

void write_result(JsonWriter& json, const RunResult& result) {
  const Summary summary = summary_of(result);
  json.begin_object().key("cycles").value(cycles(summary.last));
  json.key("cycles_min").value(cycles(summary.first));
  json.key("exposed_cycles").value(cycles(summary.exposed));
  json.key("messages").value(result.messages);
  json.key("classes").value(result.classes.size());
  json.key("unfolded").begin_array();
  for (const std::string& reason : result.unfolded) {
    json.value(reason);
  }
  json.end_array().end_object();
}

void write_dimensions(JsonWriter& json, const NativeReport& report) {
  const Time end = summary_of(report.native).last;
  json.key("dimensions").begin_array();
  for (std::size_t d = 0; d < report.native.use.size(); ++d) {
    const NetworkDimension& dimension = report.network.dimensions[d];
    const astra::DimensionUse& use = report.native.use[d];
    json.begin_object().key("name").value(dimension.name);
    json.key("kind").value(name_of(dimension.kind));
    json.key("size").value(dimension.size);
    json.key("bandwidth").value(dimension.bandwidth.value() * dimension.send_efficiency);
    json.key("latency_ns").value(cycles(dimension.latency));
    json.key("busiest_link_share").value(share(to_seconds(use.busiest), end));
    json.key("mean_link_share").value(mean_share(use, end));
    json.end_object();
  }
  json.end_array();
}

Time finish_of(const RunResult& result, std::size_t rank) {
  return result.classes[result.class_of[rank]].finish;
}

void write_ranks(JsonWriter& json, const NativeReport& report) {
  json.key("ranks").begin_array();
  for (std::size_t rank = 0; rank < report.native.class_of.size(); ++rank) {
    json.begin_object().key("rank").value(rank);
    json.key("compat_cycles");
    if (report.compat) {
      json.value(cycles(finish_of(*report.compat, rank)));
    } else {
      json.value(std::numeric_limits<double>::quiet_NaN());
    }
    json.key("native_cycles").value(cycles(finish_of(report.native, rank))).end_object();
  }
  json.end_array();
}

void write_limit(JsonWriter& json, const NativeReport& report) {
  const NativeLimit limit = limit_of(report);
  json.key("limited_by").begin_object().key("dimension");
  if (limit.dimension < 0) {
    json.value(std::numeric_limits<double>::quiet_NaN());
  } else {
    json.value(limit.dimension);
  }
  json.key("share").value(limit.share).end_object();
}

}  // namespace

NativeLimit limit_of(const NativeReport& report) {
  const Summary summary = summary_of(report.native);
  NativeLimit limit{-1, share(to_seconds(summary.computed), summary.last)};
  for (std::size_t d = 0; d < report.native.use.size(); ++d) {
    const double busy = share(to_seconds(report.native.use[d].busiest), summary.last);
    if (busy > limit.share) {
      limit = {static_cast<int>(d), busy};
    }
  }
  return limit;
}

std::string native_table(const NativeReport& report) {
  std::string text =
      fmt::format("{} ranks on {}\n{:<24}{:>16}{:>16}{:>10}\n", report.native.class_of.size(),
                  report.machine, "", "astra " + report.backend, "native", "ratio");
  text += rows(report) + dimension_rows(report);
  const NativeLimit limit = limit_of(report);
  const std::string what =
      limit.dimension < 0
          ? "compute"
          : fmt::format("dimension {}",
                        report.network.dimensions[static_cast<std::size_t>(limit.dimension)].name);
  text +=
      fmt::format("\nLimited by {}: busy for {:.1f} % of the cycles.\n", what, 100 * limit.share);
  if (!report.compat) {
    text += "ASTRA-sim's semantics: " + report.compat_failure + "\n";
  }
  for (const std::string& reason : report.native.unfolded) {
    text += "native, every rank simulated: " + reason + "\n";
  }
  return text;
}

std::string native_json(const NativeReport& report) {
  return json_text([&](JsonWriter& json) {
    json.begin_object().key("machine").value(report.machine);
    json.key("backend").value(report.backend);
    json.key("compat");
    if (report.compat) {
      write_result(json, *report.compat);
    } else {
      json.begin_object().key("error").value(report.compat_failure).end_object();
    }
    json.key("native");
    write_result(json, report.native);
    json.key("ratio");
    if (report.compat) {
      json.value(summary_of(report.native).last / summary_of(*report.compat).last);
    } else {
      json.value(std::numeric_limits<double>::quiet_NaN());
    }
    write_dimensions(json, report);
    write_limit(json, report);
    write_ranks(json, report);
    json.key("warnings").begin_array();
    for (const std::string& warning : report.warnings) {
      json.value(warning);
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery
