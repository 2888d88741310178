// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "base/format.h"
#include "base/lists.h"
#include "machine/compute/clock.h"
#include "machine/describe.h"
#include "report/run_table.h"
#include "report/trust.h"
#include "study/energy.h"
#include "study/tensor_overlap.h"
#include "workload/plan/lora.h"
#include "workload/plan/rounds.h"
#include "workload/plan/shard.h"
#include "workload/plan/tensor_overlap.h"
#include "workload/zoo/visible_share.h"

namespace orrery::report {
namespace {

/// Returns whether the machine's file says what the framework takes, which may be nothing.
bool states_framework(const machine::Machine& machine) {
  return machine.device.framework_memory + machine.device.communicator_memory > Bytes(0) ||
         !machine::origin_of(machine, "device.framework_memory").empty();
}

class StepTable : public RunTable {
 public:
  explicit StepTable(const study::Run& run) : RunTable(run), run_(run) {}

  std::string write(const TableOptions& options) {
    heading();
    rates();
    clock();
    energy();
    cost();
    line("{:<18}{}", "Trust",
         trust_text(run_.machine,
                    study::trust_in(study::causes_of(run_.model, run_.plan, run_.machine)),
                    run_.timeline.step_time, fmt::format("\n{:18}", "")));
    line("");
    steps();
    breakdown();
    hidden();
    overlap();
    memory();
    simulator(options);
    return take();
  }

 private:
  void heading() {
    const plan::Plan& plan = run_.plan;
    machine();
    if (!plan.strategy.empty()) {
      line("strategy {} on {} devices; {}; global batch {}\n", plan.strategy, plan.dp,
           name_of(plan.compute_type), grouped(plan.global_batch));
      return;
    }
    std::string schedule(name_of(plan.schedule));
    if (plan.chunks > 1) {
      schedule += fmt::format(" x {} chunks", plan.chunks);
    }
    line("tp {}{}{}, pp {} ({}), dp {}{}{}; recompute {}; {}{}; {} attention", plan.tp,
         plan.sequence_parallel ? " with sequence parallelism" : "",
         plan.cp > 1 ? fmt::format(", cp {} ({})", plan.cp, name_of(plan.cp_exchange)) : "",
         plan.pp, schedule, plan.dp, plan.zero > 0 ? fmt::format(" (ZeRO-{})", plan.zero) : "",
         experts(plan), name_of(plan.recompute), name_of(plan.compute_type),
         plan.quantization == plan::Quantization::none
             ? ""
             : fmt::format(" with {}", name_of(plan.quantization)),
         name_of(plan.attention));
    line("{}{}", overlaps(plan), offloads(plan));
    if (const std::string text = techniques(); !text.empty()) {
      line("{}", text);
    }
    if (const std::string note = plan::hypothetical_hardware(plan.overlap_tensor, run_.machine);
        !note.empty()) {
      line("{}", note);
    }
    const std::int64_t sequence = plan::sequence_of(run_.model, plan);
    const bool even = plan.batch_shares.empty();
    line("global batch {} x {} tokens = {} microbatches of {} {} replica",
         grouped(plan.global_batch), grouped(sequence),
         even ? grouped(plan.microbatches()) : plan.batch_shares, plan.microbatch,
         even ? "per" : "by");
    line("");
  }

  /// Products whose sums follow their tiles, and what that saves.
  void overlap() {
    const std::optional<study::StepOverlap> overlap = study::overlap_of(run_);
    if (!overlap) {
      return;
    }
    line("Products and the sums of their results (overlap_tensor {}), each alone",
         name_of(overlap->how));
    line("  {:<26}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9}{:>9}  bound by", "product", "times",
         "product", "ring", "gather", "overlapped", "gain", "ideal");
    for (const study::OverlappedProduct& one : overlap->products) {
      line("  {:<26}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9.3f}{:>9.3f}  {}", one.name,
           grouped(one.times), to_string(one.product), to_string(one.reduce_scatter),
           to_string(one.all_gather), to_string(one.overlapped), one.speedup(), one.ideal_speedup(),
           one.bound_by_product() ? "product" : "ring");
    }
    const auto row = [&](const char* name, double study::TileAccesses::*part) {
      line("  {:<26}{:>14} -> {}", name, to_string(whole_bytes(overlap->unfused.*part)),
           to_string(whole_bytes(overlap->fused.*part)));
    };
    row("reads of operands", &study::TileAccesses::operand_reads);
    row("reads of the sums", &study::TileAccesses::reduce_reads);
    row("writes of both", &study::TileAccesses::writes);
    row("of the all-gathers", &study::TileAccesses::gather);
    line("");
  }
  static Bytes whole_bytes(double bytes) { return Bytes(std::llround(bytes)); }

  /// Returns the text on what runs beside compute.
  static std::string overlaps(const plan::Plan& plan) {
    std::string text;
    const auto add = [&](bool overlaps, const char* what) {
      if (overlaps) {
        text += (text.empty() ? "overlap of " : ", ") + std::string(what);
      }
    };
    add(plan.tp > 1 && plan.overlap_tp, "tp");
    add(plan.tp > 1 && plan.overlap_tensor != plan::TensorOverlap::none, "tp products");
    add(plan.pp > 1 && plan.overlap_p2p, "p2p");
    add(plan.ep > 1 && plan.overlap_ep != plan::OverlapExperts::off,
        plan.overlap_ep == plan::OverlapExperts::microbatch ? "ep with a microbatch" : "ep");
    add(plan.dp * plan.cp > 1 && plan.overlap_grad_reduce, "gradients");
    add(plan.zero > 0 && plan.overlap_param_gather, "parameters");
    return text.empty() ? "no overlap" : text;
  }

  /// "co2 every 12 steps, 16 workers of 8 ranks; optimizer lion": what is not every plan's.
  std::string techniques() const {
    const plan::Plan& plan = run_.plan;
    std::vector<std::string> said;
    if (plan::runs_rounds(plan)) {
      said.push_back(fmt::format(
          "{} every {} steps, {} workers{}", name_of(plan.data_parallel_update), plan.local_steps,
          plan::workers(plan),
          plan::worker_ranks(plan) > 1 ? fmt::format(" of {} ranks", plan::worker_ranks(plan))
                                       : ""));
    }
    if (plan.quantized_gather) {
      said.emplace_back("parameters gathered in int8");
    }
    if (plan.quantized_reduce) {
      said.emplace_back("gradients reduced in int4");
    }
    if (plan.secondary_shard > 0) {
      said.push_back(fmt::format("a second copy over {} ranks", plan.secondary_shard));
    }
    if (plan.lora_rank > 0) {
      said.push_back(fmt::format(
          "adapters of rank {}, {} parameters; others frozen in {}", plan.lora_rank,
          grouped(plan::adapter_parameters(run_.model, plan)),
          plan.frozen_type == plan::FrozenType::compute_type ? name_of(plan.compute_type)
                                                             : name_of(plan.frozen_type)));
    }
    if (plan.optimizer != plan::Optimizer::adam) {
      said.push_back(fmt::format("optimizer {}", name_of(plan.optimizer)));
    }
    return joined(said, "; ");
  }

  static std::string offloads(const plan::Plan& plan) {
    std::string text;
    const auto add = [&](plan::Offload where, const char* what) {
      if (where != plan::Offload::none) {
        text += fmt::format("; {} in {}", what, name_of(where));
      }
    };
    add(plan.offload_optimizer, "optimizer");
    add(plan.offload_params, "parameters");
    if (plan.offload_activations > 0) {
      text += fmt::format("; {} of activations in cpu", percent(plan.offload_activations));
    }
    return text;
  }

  /// ", ep 8 x etp 2".
  static std::string experts(const plan::Plan& plan) {
    if (plan.ep == 1 && plan.etp == 0) {
      return "";
    }
    return fmt::format(", ep {}{}", plan.ep,
                       plan.etp > 0 ? fmt::format(" x etp {}", plan.etp) : "");
  }

  void rates() {
    const double devices = static_cast<double>(run_.devices);
    step_time();
    line("{:<18}{:>14}   {} per device", "Tokens/s", grouped(std::llround(run_.tokens_per_s)),
         scaled(run_.tokens_per_s / devices));
    line("{:<18}{:>14}   per device, MFU {} of the {} peak{}", "Model FLOP/s",
         to_string(run_.model_flops_per_device), percent(run_.mfu), name_of(run_.peak_type),
         causal_mfu());
    line("{:<18}{:>14}   per device, HFU {} (with recompute)", "Hardware FLOP/s",
         to_string(run_.hardware_flops_per_device), percent(run_.hfu));
  }

  /// Returns " (48.1 % by causal pairs)": the MFU where attention does not count the whole square.
  std::string causal_mfu() const {
    const double share = zoo::visible_share(run_.model, plan::sequence_of(run_.model, run_.plan));
    return share < 1 ? fmt::format(" ({} by causal pairs)", percent(run_.mfu * share)) : "";
  }

  void clock() {
    const compute::Device& device = run_.machine.device;
    if (!device.power_model.known() || run_.plan.clocks == plan::Clocks::boost) {
      return;
    }
    line("{:<18}{:>14}   of full clock, {} of the kernel tables' rate, {} {} ({})", "Clock",
         percent(device.full_clock), percent(device.clock),
         device.full_clock < 1 ? "held by the cap of" : "below the cap of",
         to_string(compute::cap_of(device)),
         machine::origin_word(run_.machine, "device.power_model.gemm_power"));
  }

  void energy() {
    if (const std::optional<study::StepEnergy> energy = study::energy_of(run_)) {
      const double tokens = study::tokens_of(run_);
      line("{:<18}{:>14}   per step, {} per device, {} per token", "Energy",
           to_string(energy->total()), to_string(energy->average_power(run_)),
           to_string(energy->total() / tokens));
    }
  }

  void cost() {
    if (const std::optional<study::StepCost> cost = study::cost_of(run_)) {
      line("{:<18}{:>14}   per step, {} per million tokens", "Cost", to_string(cost->per_step),
           to_string(cost->per_million_tokens));
    }
  }

  void memory() {
    line("Memory per device in GiB at each stage's fullest moment; capacity {} GiB",
         gib(run_.capacity));
    line("  (total as the driver shows it; tensors, as frameworks count, are all but framework)");
    std::string header = fmt::format("  {:>5}", "stage");
    for (const Named<plan::MemoryCategory>& category : kNames<plan::MemoryCategory>) {
      header += fmt::format("{:>{}}", category.name, memory_column(category));
    }
    line("{}{:>9}{:>8}", header, "total", "full");
    for (const std::size_t stage : listed_stages(run_)) {
      memory_row(stage);
    }
    if (run_.memory.size() > kListed) {
      line("  (first, last and fullest of {} stages; --json has them all)", run_.memory.size());
    }
    for (const std::size_t stage : listed_stages(run_)) {
      moment_row(stage);
    }
    if (!states_framework(run_.machine)) {
      line("  {} states no framework_memory or communicator_memory: nothing is counted of either",
           run_.machine.name);
    }
    line("");
  }

  static std::size_t memory_column(const Named<plan::MemoryCategory>& category) {
    return std::max<std::size_t>(9, category.name.size() + 2);
  }

  void memory_row(std::size_t stage) {
    const footprint::StageMemory& memory = run_.memory[stage];
    std::string row = fmt::format("  {:>5}", stage);
    for (const Named<plan::MemoryCategory>& category : kNames<plan::MemoryCategory>) {
      row += fmt::format("{:>{}}", gib(memory[category.value]), memory_column(category));
    }
    const bool fits = memory.total() <= memory.capacity;
    const double share = memory.capacity > Bytes(0) ? memory.total() / memory.capacity : 0;
    line("{}{:>9}{:>6.0f} %{}{}", row, gib(memory.total()), 100 * share,
         fits ? "" : "  DOES NOT FIT",
         memory.is_close_call() ? "  (within 5 % of the capacity: may be wrong)" : "");
  }

  /// Writes when a stage is fullest, and what it offloads.
  void moment_row(std::size_t stage) {
    const footprint::StageMemory& memory = run_.memory[stage];
    std::string row =
        fmt::format("  stage {}: {}", stage,
                    run_.plan.strategy.empty() ? footprint::to_string(memory.moment, memory.chunked)
                                               : "everything is kept until its backward");
    if (memory.lower[0] > Bytes(0)) {
      row += fmt::format("; host {} GiB", gib(memory.lower[0]));
    }
    if (memory.lower[1] > Bytes(0)) {
      row += fmt::format("; storage {} GiB", gib(memory.lower[1]));
    }
    if (memory.lower[graph::kRemoteLower] > Bytes(0)) {
      row += fmt::format("; remote {} GiB", gib(memory.lower[graph::kRemoteLower]));
    }
    line("{}", row);
  }

  const study::Run& run_;
};

}  // namespace

std::vector<std::size_t> listed_stages(const study::Run& run) {
  std::set<std::size_t> stages;
  const std::size_t count = run.memory.size();
  if (count <= kListed) {
    for (std::size_t i = 0; i < count; ++i) {
      stages.insert(i);
    }
  } else {
    const auto largest =
        std::max_element(run.memory.begin(), run.memory.end(),
                         [](const footprint::StageMemory& a, const footprint::StageMemory& b) {
                           return a.total() < b.total();
                         });
    stages = {0, static_cast<std::size_t>(largest - run.memory.begin()), count - 1};
  }
  return {stages.begin(), stages.end()};
}

std::string table_report(const study::Run& run, const TableOptions& options) {
  return StepTable(run).write(options);
}

}  // namespace orrery::report
