// SPDX-License-Identifier: Apache-2.0
#include "web/extra.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "report/json_writer.h"
#include "web/timeline.h"

namespace orrery::web {
namespace {

constexpr std::size_t kParts = 30;  // of a histogram

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

}  // namespace

std::string run_extra(const study::WorkloadRun& run) {
  return object([&](report::JsonWriter& json) {
    json.key("timeline");
    write_timeline(run, json);
  });
}

std::string serving_extra(const serving::Run& run) {
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
  });
}

}  // namespace orrery::web
