// SPDX-License-Identifier: Apache-2.0
/// Rows of a served run: its requests, its steps.
#include <fmt/format.h>

#include <iterator>

#include "report/json_writer.h"
#include "report/node_json.h"
#include "report/serving.h"

namespace orrery::report {

std::string serving_requests_csv(const serving::Run& run) {
  std::string text =
      "request,input_tokens,output_tokens,sent_s,queued_s,scheduled_s,first_token_s,last_token_s,"
      "ttft_s,tpot_s,e2e_s,cached_tokens,preemptions,moved_s,fetching_s,stalled_s,"
      "beside_prompts_s\n";
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const serving::Served& request = run.requests[i];
    const double tpot = request.output > 1 ? to_seconds(request.tpot()) : 0;
    fmt::format_to(
        std::back_inserter(text),
        "{},{},{},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{},{},{:.9f},{:.9f},"
        "{:.9f},{:.9f}\n",
        i, request.input, request.output, to_seconds(request.sent), to_seconds(request.queued),
        to_seconds(request.scheduled), to_seconds(request.first), to_seconds(request.last),
        to_seconds(request.ttft()), tpot, to_seconds(request.latency()), request.cached,
        request.preemptions, to_seconds(request.moved), to_seconds(request.fetching),
        to_seconds(request.stalled), to_seconds(request.beside));
  }
  return text;
}

std::string serving_trace(const serving::Run& run) {
  const auto microseconds = [](Time time) { return 1e6 * to_seconds(time); };
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("displayTimeUnit").value("ms");
    json.key("traceEvents").begin_array();
    for (const serving::StepRecord& step : run.steps) {
      json.begin_object();
      json.key("name").value(step.tokens == step.requests ? "decode" : "mixed");
      json.key("ph").value("X").key("pid").value(0).key("tid").value(step.engine);
      json.key("ts").value(microseconds(step.begin));
      json.key("dur").value(microseconds(step.end - step.begin));
      json.key("args").begin_object();
      json.key("tokens").value(step.tokens).key("requests").value(step.requests);
      json.end_object();
      json.end_object();
    }
    for (const serving::Sample& sample : run.samples) {
      json.begin_object();
      json.key("name").value("engine").key("ph").value("C").key("pid").value(0);
      json.key("ts").value(microseconds(sample.at));
      json.key("args").begin_object();
      json.key("running").value(sample.running).key("waiting").value(sample.waiting);
      json.key("kv_percent").value(100 * sample.kv_use);
      json.end_object();
      json.end_object();
    }
    json.end_array();
    json.end_object();
  });
}

std::string engine_json(const serving::Engine& engine, bool of_checkpoint) {
  const auto node =
      parse_config(serving::to_yaml(engine, of_checkpoint), engine.name, ConfigSyntax::yaml);
  return json_text([&](JsonWriter& json) { write_node(json, node.value()); });
}

}  // namespace orrery::report
