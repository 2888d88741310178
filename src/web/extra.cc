// SPDX-License-Identifier: Apache-2.0
#include "web/extra.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "report/json_writer.h"
#include "web/timeline.h"

namespace orrery::web {
namespace {

constexpr std::size_t kParts = 30;   // of a histogram
constexpr std::size_t kNearest = 5;  // published runs

std::string object(const std::function<void(report::JsonWriter&)>& write) {
  std::string text;
  {
    report::JsonWriter json([&](std::string_view piece) { text += piece; });
    json.begin_object();
    write(json);
    json.end_object();
  }
  return text;
}

void write_histogram(report::JsonWriter& json, std::string_view name,
                     const std::vector<double>& values) {
  if (values.empty()) {
    return;
  }
  const auto [least, most] = std::ranges::minmax(values);
  const double width = std::max(most - least, 1e-9) / static_cast<double>(kParts);
  std::vector<std::int64_t> counts(kParts);
  for (const double value : values) {
    ++counts[std::min(kParts - 1, static_cast<std::size_t>((value - least) / width))];
  }
  json.begin_object();
  json.key("name").value(name).key("from").value(least).key("width").value(width);
  json.key("counts").begin_array();
  for (const std::int64_t count : counts) {
    json.value(count);
  }
  json.end_array().end_object();
}

void write_rows(report::JsonWriter& json, std::string_view name,
                const std::vector<study::NearestRow>& rows) {
  json.key(name).objects(rows, [&](const study::NearestRow& row) {
    json.key("table").value(row.table).key("key").value(row.key);
    json.key("model").value(row.model).key("machine").value(row.machine);
    json.key("devices").value(row.devices).key("measure").value(row.measure);
    json.key("predicted").value(row.predicted).key("published").value(row.published);
    json.key("error").value(row.error);
  });
}

void write_nearest(report::JsonWriter& json, const std::vector<PlannedRun>& runs) {
  for (const bool memory : {false, true}) {
    std::vector<study::NearestRow> rows;
    for (const PlannedRun& run : runs) {
      for (auto& row : study::nearest_rows(*run.model, run.plan, *run.machine, kNearest, memory)) {
        if (std::ranges::none_of(rows, [&](const study::NearestRow& other) {
              return other.table == row.table && other.key == row.key;
            })) {
          rows.push_back(std::move(row));
        }
      }
    }
    write_rows(json, memory ? "nearest_memory" : "nearest", rows);
  }
}

}  // namespace

std::string run_extra(const study::WorkloadRun& run, const zoo::Model* model,
                      const plan::Plan* plan) {
  return object([&](report::JsonWriter& json) {
    json.key("timeline");
    write_timeline(run, json);
    if (model != nullptr && plan != nullptr) {
      write_nearest(json, {{model, &run.machine, *plan}});
    }
  });
}

std::string run_extra(const study::Run& run) {
  return run_extra(run, &run.model, &run.plan);
}

std::string nearest_extra(const std::vector<PlannedRun>& runs) {
  return object([&](report::JsonWriter& json) { write_nearest(json, runs); });
}

std::string serving_extra(const serving::Run& run, const std::vector<serving::LoadPoint>& points,
                          const std::vector<study::NearestRow>& nearest) {
  std::vector<double> first;
  std::vector<double> further;
  std::vector<double> last;
  for (const serving::Served& one : run.requests) {
    first.push_back(to_seconds(one.ttft()));
    last.push_back(to_seconds(one.latency()));
    if (one.output > 1) {
      further.push_back(to_seconds(one.tpot()));
    }
  }
  return object([&](report::JsonWriter& json) {
    json.key("histograms").begin_array();
    write_histogram(json, "TTFT", first);
    write_histogram(json, "TPOT", further);
    write_histogram(json, "E2E latency", last);
    json.end_array();
    if (!nearest.empty()) {
      write_rows(json, "nearest", nearest);
    }
    if (points.empty()) {
      return;
    }
    json.key("curve").begin_array();
    for (const serving::LoadPoint& point : points) {
      json.begin_object().key("rate").value(point.rate);
      json.key("ttft_p50").value(to_seconds(point.ttft.median));
      json.key("ttft_p99").value(to_seconds(point.ttft.p99));
      json.key("e2e_p50").value(to_seconds(point.e2e.median));
      json.key("e2e_p99").value(to_seconds(point.e2e.p99)).end_object();
    }
    json.end_array();
  });
}

}  // namespace orrery::web
