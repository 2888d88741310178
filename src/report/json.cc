// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "machine/compute/clock.h"
#include "machine/describe.h"
#include "report/report.h"
#include "report/trust.h"
#include "study/energy.h"
#include "study/tensor_overlap.h"

namespace orrery::report {
namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

void write_breakdown(JsonWriter& json, const study::WorkloadRun& run,
                     const simulate::Breakdown& breakdown) {
  json.key("breakdown_s").begin_object();
  for (std::size_t row = 0; row < breakdown.time.size(); ++row) {
    json.key(run.timeline.categories.name(row)).value(to_seconds(breakdown.time[row]));
  }
  json.end_object();
  json.key("hidden_s").begin_object();
  for (std::size_t group = 0; group < breakdown.hidden.size(); ++group) {
    json.key(run.workload.groups[group].name).value(to_seconds(breakdown.hidden[group]));
  }
  json.end_object();
}

/// Writes the steps of a run of several.
void write_steps(JsonWriter& json, const study::Run& run) {
  const std::vector<Time>& ends = run.timeline.step_ends;
  if (ends.size() == 1) {
    return;
  }
  json.key("steps").begin_object();
  json.key("count").value(std::ssize(ends));
  json.key("warm").value(run.warm_steps);
  json.key("run_time_s").value(to_seconds(run.timeline.run_time));
  json.key("ends_s").begin_array();
  for (const Time end : ends) {
    json.value(to_seconds(end));
  }
  json.end_array().end_object();
}

/// Writes the peaks of runs without a plan.
void write_peaks(JsonWriter& json, const study::WorkloadRun& run) {
  if (run.peaks.empty()) {
    return;
  }
  json.key("memory_bytes").begin_array();
  for (const study::RankPeak& peak : run.peaks) {
    const graph::MemoryBytes& bytes = peak.fullest.bytes;
    json.begin_object();
    json.key("rank").value(peak.rank);
    for (std::size_t kind = 0; kind < run.workload.memory.size(); ++kind) {
      json.key(run.workload.memory[kind].name).value(bytes[graph::MemoryIndex(kind)].value());
    }
    json.key("total").value(bytes.total().value());
    json.key("capacity").value(capacity_of(run).value());
    json.key("fits").value(bytes.total() <= capacity_of(run));
    json.key("moment_s").value(to_seconds(peak.fullest.at));
    json.end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const study::Run& run) {
  json.key("memory_bytes").begin_array();
  for (const footprint::StageMemory& stage : run.memory) {
    json.begin_object();
    for (const Named<plan::MemoryCategory>& category : kNames<plan::MemoryCategory>) {
      json.key(category.name).value(stage[category.value].value());
    }
    json.key("total").value(stage.total().value());
    json.key("capacity").value(stage.capacity.value());
    json.key("fits").value(stage.total() <= stage.capacity);
    json.key("allocated").value(stage.tensors().value());
    json.key("close_call").value(stage.is_close_call());
    json.key("microbatches_in_flight").value(stage.microbatches_in_flight);
    json.key("moment").value(footprint::to_string(stage.moment, stage.chunked));
    json.key("host").value(stage.lower[0].value());
    json.key("storage").value(stage.lower[1].value());
    json.key("remote").value(stage.lower[graph::kRemoteLower].value());
    json.end_object();
  }
  json.end_array();
}

/// Pieces of work in order, of the listed stages: [name, bytes].
void write_memory_timeline(JsonWriter& json, const study::Run& run) {
  json.key("memory_timeline").begin_array();
  for (const std::size_t number : listed_stages(run)) {
    const footprint::StageMemory& stage = run.memory[number];
    json.begin_object();
    json.key("stage").value(static_cast<std::int64_t>(number));
    json.key("points").begin_array();
    for (const footprint::MemoryPoint& point : stage.timeline) {
      json.begin_array();
      json.value(footprint::to_string(point.moment, stage.chunked));
      json.value(point.bytes.value());
      json.end_array();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

/// The clock that the power cap leaves; nothing where the machine does not say what kernels draw.
void write_clock(JsonWriter& json, const study::Run& run) {
  const compute::Device& device = run.machine.device;
  if (!device.power_model.known()) {
    return;
  }
  json.key("clock").begin_object();
  json.key("of_full_clock").value(device.full_clock);
  json.key("of_kernel_tables").value(device.clock);
  if (run.plan.clocks == plan::Clocks::sustained) {
    json.key("power_cap_w").value(compute::cap_of(device).value());
  }
  json.key("limited_by").value(device.full_clock < 1 ? "power" : "nothing");
  json.key("origin").value(machine::origin_word(run.machine, "device.power_model.gemm_power"));
  json.end_object();
}

void write_accesses(JsonWriter& json, const study::TileAccesses& accesses) {
  json.begin_object();
  json.key("operand_reads").value(accesses.operand_reads);
  json.key("reduce_reads").value(accesses.reduce_reads);
  json.key("writes").value(accesses.writes);
  json.key("gather").value(accesses.gather);
  json.key("total").value(accesses.total());
  json.end_object();
}

void write_overlap(JsonWriter& json, const study::Run& run) {
  const std::optional<study::StepOverlap> overlap = study::overlap_of(run);
  if (!overlap) {
    return;
  }
  json.key("overlap_tensor").begin_object();
  json.key("technique").value(name_of(overlap->how));
  json.key("hypothetical").value(overlap->hypothetical);
  json.key("ranks").value(overlap->ranks);
  json.key("products").begin_array();
  for (const study::OverlappedProduct& one : overlap->products) {
    json.begin_object();
    json.key("name").value(one.name).key("phase").value(one.phase);
    json.key("m").value(one.gemm.m).key("n").value(one.gemm.n).key("k").value(one.gemm.k);
    json.key("result_bytes").value(one.result.value()).key("times").value(one.times);
    json.key("product_s").value(to_seconds(one.product));
    json.key("reduce_scatter_s").value(to_seconds(one.reduce_scatter));
    json.key("exposed_gather_s").value(to_seconds(one.all_gather));
    json.key("sequential_s").value(to_seconds(one.sequential));
    json.key("ideal_s").value(to_seconds(one.ideal));
    json.key("overlapped_s").value(to_seconds(one.overlapped));
    json.key("bound_by").value(one.bound_by_product() ? "product" : "ring");
    json.key("unfused_bytes");
    write_accesses(json, one.unfused);
    json.key("fused_bytes");
    write_accesses(json, one.fused);
    json.end_object();
  }
  json.end_array();
  json.key("unfused_bytes");
  write_accesses(json, overlap->unfused);
  json.key("fused_bytes");
  write_accesses(json, overlap->fused);
  json.end_object();
}

void write_energy(JsonWriter& json, const study::Run& run) {
  const std::optional<study::StepEnergy> energy = study::energy_of(run);
  if (!energy) {
    return;
  }
  const double total = energy->total().value();
  json.key("energy").begin_object();
  json.key("per_step_j").value(total);
  json.key("per_step_kwh").value(total / kJoulesPerKilowattHour);
  json.key("average_device_power_w").value(energy->average_power(run).value());
  json.key("per_token_j").value(total / study::tokens_of(run));
  json.key("tokens_per_j").value(study::tokens_of(run) / total);
  json.key("idle_j").value(energy->idle.value());
  json.key("kernels_j").value(energy->kernels.value());
  json.key("communication_j").value(energy->communication.value());
  json.key("lower_memory_j").value(energy->lower_memory.value());
  json.key("links_j").begin_object();
  for (std::size_t i = 0; i < energy->links.size(); ++i) {
    json.key(run.machine.network[i].name).value(energy->links[i].value());
  }
  json.end_object();
  json.key("device_memory_j").value(energy->device_memory.value());
  json.end_object();
}

void write_cost(JsonWriter& json, const study::Run& run) {
  if (const std::optional<study::StepCost> cost = study::cost_of(run)) {
    json.key("cost").begin_object();
    json.key("price_per_hour").value(cost->price_per_hour.value());
    json.key("per_step").value(cost->per_step.value());
    json.key("per_million_tokens").value(cost->per_million_tokens.value());
    json.end_object();
  }
}

void write_simulator(JsonWriter& json, const study::WorkloadRun& run) {
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
  for (const study::PassTime& pass : run.passes) {
    json.key(pass.name).value(pass.seconds);
  }
  json.end_object();
}

}  // namespace

Bytes capacity_of(const study::WorkloadRun& run) {
  const auto& memory = run.machine.device.memory;
  return memory.empty() ? Bytes(0) : memory.front().capacity;
}

double events_per_second(const study::WorkloadRun& run) {
  return run.wall_s > 0 ? static_cast<double>(run.timeline.events) / run.wall_s : 0;
}

void write_plan(JsonWriter& json, const plan::Plan& plan) {
  json.begin_object();
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
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

std::string json_report(const study::WorkloadRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("name").value(run.name);
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("network").value(name_of(run.network));
    json.key("step_time_s").value(to_seconds(run.timeline.step_time));
    json.key("critical_rank").value(run.timeline.critical_rank);
    write_breakdown(json, run, run.timeline.breakdown);
    write_peaks(json, run);
    write_simulator(json, run);
    json.end_object();
  });
}

std::string json_report(const study::Run& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("model").value(run.model.name);
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("network").value(name_of(run.network));
    json.key("step_time_s").value(to_seconds(run.timeline.step_time));
    write_trust(json, run.machine,
                study::trust_in(study::causes_of(run.model, run.plan, run.machine)),
                to_seconds(run.timeline.step_time));
    write_steps(json, run);
    json.key("tokens_per_s").value(run.tokens_per_s);
    json.key("model_flops_per_device").value(run.model_flops_per_device.value());
    json.key("hardware_flops_per_device").value(run.hardware_flops_per_device.value());
    json.key("peak_type").value(name_of(run.peak_type));
    json.key("mfu").value(run.mfu);
    json.key("hfu").value(run.hfu);
    json.key("critical_rank").value(run.timeline.critical_rank);
    write_breakdown(json, run, run.timeline.breakdown);
    write_memory(json, run);
    write_memory_timeline(json, run);
    json.key("fits").value(run.fits);
    write_clock(json, run);
    write_overlap(json, run);
    write_energy(json, run);
    write_cost(json, run);
    write_simulator(json, run);
    json.key("plan");
    write_plan(json, run.plan);
    json.end_object();
  });
}

}  // namespace orrery::report
