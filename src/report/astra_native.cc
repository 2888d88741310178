// SPDX-License-Identifier: Apache-2.0
#include "report/astra_native.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/astra.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

using astra::RunResult;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  ///< null in JSON

struct Summary {
  Time last{0};
  Time first = Time::max();
  Time exposed{0};

  void add(Time finish, Time exposed_of_it) {
    last = std::max(last, finish);
    first = std::min(first, finish);
    exposed = std::max(exposed, exposed_of_it);
  }
};

Summary summary_of(const RunResult& result) {
  Summary summary;
  for (const RunResult::Class& one : result.classes) {
    summary.add(one.finish, one.exposed);
  }
  return summary;
}

Time computed(const simulate::Timeline& timeline, std::size_t rank) {
  Time sum{0};
  for (std::size_t row = 0; row < timeline.categories.size(); ++row) {
    sum += timeline.categories.is_phase(row) ? timeline.by_rank[rank].time[row] : Time(0);
  }
  return sum;
}

Summary summary_of(const simulate::Timeline& timeline) {
  Summary summary;
  for (std::size_t rank = 0; rank < timeline.finish.size(); ++rank) {
    summary.add(timeline.finish[rank], timeline.finish[rank] - computed(timeline, rank));
  }
  return summary;
}

std::string rows(const NativeReport& report) {
  const Summary native = summary_of(report.native.timeline);
  const Summary compat = report.compat ? summary_of(*report.compat) : Summary{};
  const auto row = [&](const char* name, Time Summary::*value) {
    const std::int64_t right = cycles(native.*value);
    const std::int64_t left = report.compat ? cycles(compat.*value) : 0;
    const std::string ratio =
        left > 0 ? fmt::format("{:.3f}", static_cast<double>(right) / static_cast<double>(left))
                 : "-";
    return fmt::format("{:<24}{:>16}{:>16}{:>10}\n", name,
                       report.compat ? std::to_string(left) : "-", right, ratio);
  };
  return row("cycles, last rank", &Summary::last) + row("cycles, first rank", &Summary::first) +
         row("exposed communication", &Summary::exposed);
}

std::string dimension_rows(const machine::Machine& machine) {
  std::string text = fmt::format("\n{:<16}{:<16}{:>6}{:>12}{:>12}\n", "dimension", "kind", "size",
                                 "GB/s", "latency");
  for (const topology::NetworkDimension& dimension : machine.network) {
    text +=
        fmt::format("{:<16}{:<16}{:>6}{:>12.1f}{:>9} ns\n", dimension.name, name_of(dimension.kind),
                    dimension.size, dimension.bandwidth.value() / 1e9, cycles(dimension.latency));
  }
  return text;
}

std::string breakdown_rows(const simulate::Timeline& timeline) {
  std::string text = fmt::format("\n{:<24}{:>32}\n", fmt::format("rank {}", timeline.critical_rank),
                                 "cycles, native");
  for (std::size_t row = 0; row < timeline.categories.size(); ++row) {
    const Time time = timeline.breakdown.time[row];
    if (time > Time(0)) {
      text += fmt::format("{:<24}{:>32}{:>8.1f} %\n", timeline.categories.name(row), cycles(time),
                          100 * (time / timeline.step_time));
    }
  }
  return text;
}

void write_summary(JsonWriter& json, const Summary& summary) {
  json.key("cycles").value(cycles(summary.last));
  json.key("cycles_min").value(cycles(summary.first));
  json.key("exposed_cycles").value(cycles(summary.exposed));
}

void write_compat(JsonWriter& json, const NativeReport& report) {
  json.key("compat").begin_object();
  if (report.compat) {
    write_summary(json, summary_of(*report.compat));
    json.key("messages").value(report.compat->messages);
    json.key("classes").value(report.compat->classes.size());
  } else {
    json.key("error").value(report.compat_failure);
  }
  json.end_object();
}

void write_native(JsonWriter& json, const simulate::Timeline& timeline) {
  json.key("native").begin_object();
  write_summary(json, summary_of(timeline));
  json.key("simulated").value(timeline.fold.simulated);
  json.key("unfolded").values(timeline.fold.reasons).end_object();
}

void write_dimensions(JsonWriter& json, const machine::Machine& machine) {
  json.key("dimensions").objects(machine.network, [&](const topology::NetworkDimension& dimension) {
    json.key("name").value(dimension.name);
    json.key("kind").value(name_of(dimension.kind));
    json.key("size").value(dimension.size);
    json.key("bandwidth").value(dimension.bandwidth.value());
    json.key("latency_ns").value(cycles(dimension.latency));
  });
}

void write_breakdown(JsonWriter& json, const simulate::Timeline& timeline) {
  json.key("breakdown").begin_object();
  for (std::size_t row = 0; row < timeline.categories.size(); ++row) {
    json.key(timeline.categories.name(row)).value(cycles(timeline.breakdown.time[row]));
  }
  json.end_object();
}

void write_ranks(JsonWriter& json, const NativeReport& report) {
  const simulate::Timeline& timeline = report.native.timeline;
  json.key("ranks").begin_array();
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(timeline.ranks[i]);
    json.begin_object().key("rank").value(rank);
    json.key("compat_cycles");
    if (report.compat) {
      json.value(cycles(report.compat->classes[report.compat->class_of[rank]].finish));
    } else {
      json.value(kNone);
    }
    json.key("native_cycles").value(cycles(timeline.finish[i])).end_object();
  }
  json.end_array();
}

}  // namespace

std::string native_table(const NativeReport& report) {
  const study::WorkloadRun& run = report.native;
  std::string text = fmt::format("{} ranks on {}, network {}\n{:<24}{:>16}{:>16}{:>10}\n",
                                 run.devices, run.machine.name, name_of(run.network), "",
                                 "astra " + report.backend, "native", "ratio");
  text += rows(report) + dimension_rows(run.machine) + breakdown_rows(run.timeline);
  if (!report.compat) {
    text += "\nASTRA-sim's semantics: " + report.compat_failure + "\n";
  }
  return text;
}

std::string native_json(const NativeReport& report) {
  return json_text([&](JsonWriter& json) {
    const simulate::Timeline& timeline = report.native.timeline;
    json.begin_object().key("machine").value(report.native.machine.name);
    json.key("network").value(name_of(report.native.network));
    json.key("backend").value(report.backend);
    write_compat(json, report);
    write_native(json, timeline);
    json.key("ratio").value(report.compat ? timeline.step_time / summary_of(*report.compat).last
                                          : kNone);
    write_dimensions(json, report.native.machine);
    write_breakdown(json, timeline);
    write_ranks(json, report);
    json.key("warnings").values(report.warnings).end_object();
  });
}

}  // namespace orrery::report
