// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

namespace orrery {
namespace {

void write_breakdown(JsonWriter& json, const Breakdown& breakdown) {
  json.key("breakdown_s").begin_object();
  for (const Named<TimeCategory>& category : kNames<TimeCategory>) {
    json.key(category.name).value(to_seconds(breakdown[category.value]));
  }
  json.end_object();
  json.key("hidden_s").begin_object();
  for (const Named<Axis>& axis : kNames<Axis>) {
    json.key(axis.name).value(to_seconds(breakdown.hidden[static_cast<std::size_t>(axis.value)]));
  }
  json.end_object();
}

void write_memory(JsonWriter& json, const Run& run) {
  json.key("memory_bytes").begin_array();
  for (const StageMemory& stage : run.memory) {
    json.begin_object();
    for (const Named<MemoryCategory>& category : kNames<MemoryCategory>) {
      json.key(category.name).value(stage[category.value].value());
    }
    json.key("total").value(stage.total().value());
    json.key("capacity").value(run.capacity.value());
    json.key("fits").value(stage.total() <= run.capacity);
    json.key("microbatches_in_flight").value(stage.microbatches_in_flight);
    json.end_object();
  }
  json.end_array();
}

void write_simulator(JsonWriter& json, const Run& run) {
  json.key("fold").begin_object();
  json.key("ranks").value(run.timeline.fold.ranks);
  json.key("simulated").value(run.timeline.fold.simulated);
  json.key("reasons").begin_array();
  for (const std::string& reason : run.timeline.fold.reasons) {
    json.value(reason);
  }
  json.end_array().end_object();
  json.key("events").value(run.timeline.events);
  json.key("wall_s").value(run.wall_s);
  json.key("events_per_s").value(events_per_second(run));
  json.key("passes_s").begin_object();
  for (const PassTime& pass : run.passes) {
    json.key(pass.name).value(pass.seconds);
  }
  json.end_object();
}

}  // namespace

double events_per_second(const Run& run) {
  return run.wall_s > 0 ? static_cast<double>(run.timeline.events) / run.wall_s : 0;
}

void write_plan(JsonWriter& json, const Plan& plan) {
  json.begin_object();
  Plan::fields([&](std::string_view name, auto member, std::string_view) {
    const auto& value = plan.*member;
    json.key(name);
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      json.value(value);
    } else {
      json.value(value_text(value));
    }
  });
  json.end_object();
}

std::string json_report(const Run& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("model").value(run.model.name);
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("step_time_s").value(to_seconds(run.timeline.step_time));
    json.key("tokens_per_s").value(run.tokens_per_s);
    json.key("model_flops_per_device").value(run.model_flops_per_device.value());
    json.key("hardware_flops_per_device").value(run.hardware_flops_per_device.value());
    json.key("mfu").value(run.mfu);
    json.key("hfu").value(run.hfu);
    json.key("critical_rank").value(run.timeline.critical_rank);
    write_breakdown(json, run.timeline.breakdown);
    write_memory(json, run);
    json.key("fits").value(run.fits);
    write_simulator(json, run);
    json.key("plan");
    write_plan(json, run.plan);
    json.end_object();
  });
}

}  // namespace orrery
