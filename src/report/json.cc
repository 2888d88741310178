// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "machine/compute/clock.h"
#include "machine/describe.h"
#include "report/fields.h"
#include "report/report.h"
#include "report/trust.h"
#include "study/energy.h"
#include "study/tensor_overlap.h"
#include "workload/plan/lora.h"
#include "workload/plan/shard.h"
#include "workload/zoo/visible_share.h"

namespace orrery::report {
namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

void declare_breakdown(const study::WorkloadRun& run, Fields& fields) {
  const simulate::Breakdown& breakdown = run.timeline.breakdown;
  fields.map<double>(
      "breakdown_s",
      {"seconds of the critical rank by category; they sum to step_time_s", "seconds"},
      [&](const auto& add) {
        for (std::size_t row = 0; row < breakdown.time.size(); ++row) {
          add(run.timeline.categories.name(row), to_seconds(breakdown.time[row]));
        }
      });
  fields.map<double>("hidden_s", {"seconds of communication while kernels run, by axis", "seconds"},
                     [&](const auto& add) {
                       for (std::size_t group = 0; group < breakdown.hidden.size(); ++group) {
                         add(run.workload.groups[group].name, to_seconds(breakdown.hidden[group]));
                       }
                     });
}

void declare_steps(const study::Run& run, Fields& fields) {
  const std::vector<Time>& ends = run.timeline.step_ends;
  fields.part(
      "steps", "with --steps: the steps of the run",
      ends.size() == 1 ? std::nullopt : std::optional(ends), [&](const std::vector<Time>& times) {
        fields.field("count", "steps, with those of the warm-up", times.size());
        fields.field("warm", "steps of the warm-up, which no mean counts", run.warm_steps);
        fields.field("run_time_s", "seconds until all is done", to_seconds(run.timeline.run_time));
        fields.values(
            "ends_s",
            {"by step: when every rank's kernels of it are done", "seconds from the beginning"},
            times, [](Time end) { return to_seconds(end); });
      });
}

/// Declares the peaks of runs without a plan.
void declare_peaks(const study::WorkloadRun& run, Fields& fields) {
  fields.list(
      "memory_bytes",
      {"by simulated rank, with --memory or --trace", "a rank at its fullest moment"}, run.peaks,
      [&](const study::RankPeak& peak) {
        const graph::MemoryBytes& bytes = peak.fullest.bytes;
        fields.field("rank", "its number", peak.rank);
        for (std::size_t kind = 0; kind < run.workload.memory.size(); ++kind) {
          fields.field(run.workload.memory[kind].name, "bytes",
                       bytes[graph::MemoryIndex(kind)].value());
        }
        fields.field("total", "bytes of all kinds", bytes.total().value());
        fields.field("capacity", "bytes of the device's memory", capacity_of(run).value());
        fields.field("fits", "total is at most capacity", bytes.total() <= capacity_of(run));
        fields.field("moment_s", "seconds from the beginning", to_seconds(peak.fullest.at));
      },
      true);
}

constexpr std::string_view sentence_of(plan::MemoryCategory category) {
  switch (category) {
    case plan::MemoryCategory::optimizer:
      return "bytes of optimizer states";
    case plan::MemoryCategory::buffers:
      return "bytes of messages, gathered parameters and reductions";
    case plan::MemoryCategory::framework:
      return "bytes of driver, runtime and communicators";
    default:
      return "bytes";
  }
}

void declare_memory(const study::Run& run, Fields& fields) {
  fields.list("memory_bytes", {"by stage", "one stage at its fullest moment"}, run.memory,
              [&](const footprint::StageMemory& stage) {
                for (const Named<plan::MemoryCategory>& row : kNames<plan::MemoryCategory>) {
                  fields.field(row.name, sentence_of(row.value), stage[row.value].value());
                }
                fields.field("total", "sum of the above", stage.total().value());
                fields.field("capacity", "bytes of the device's memory", stage.capacity.value());
                fields.field("fits", "total is at most capacity", stage.total() <= stage.capacity);
                fields.field("allocated",
                             "bytes of tensors: total, which the driver shows, without framework",
                             stage.tensors().value());
                fields.field("close_call", "total is within 5 % of capacity: fits may be wrong",
                             stage.is_close_call());
                fields.field("microbatches_in_flight", "whose activations are kept",
                             stage.microbatches_in_flight);
                fields.field("moment", "the fullest moment, to which the bytes belong",
                             footprint::to_string(stage.moment, stage.chunked));
                fields.field("host", "bytes in host memory", stage.lower[0].value());
                fields.field("storage", "bytes in storage", stage.lower[1].value());
                fields.field("remote", "bytes in remote memory",
                             stage.lower[graph::kRemoteLower].value());
              });
}

/// One stage that the table lists, by its number.
struct ListedStage {
  std::size_t number = 0;
  footprint::StageMemory memory;
};

void declare_memory_timeline(const study::Run& run, Fields& fields) {
  std::vector<ListedStage> stages;
  for (const std::size_t number : listed_stages(run)) {
    stages.push_back({number, run.memory[number]});
  }
  fields.list("memory_timeline", {"of the stages that the table lists", "one stage"}, stages,
              [&](const ListedStage& stage) {
                fields.field("stage", "its number", stage.number);
                fields.rows("points",
                            {"pieces of work in order", "[name, most bytes while it ran]"},
                            stage.memory.timeline, [&](const footprint::MemoryPoint& point) {
                              fields.item(footprint::to_string(point.moment, stage.memory.chunked));
                              fields.item(point.bytes.value());
                            });
              });
}

/// The clock that the power cap leaves.
struct Clock {
  double of_full_clock = 1;
  double of_kernel_tables = 1;
  std::optional<double> cap;  ///< watts
  std::string origin;
};

/// Returns the clock; nothing where the machine does not say what kernels draw.
std::optional<Clock> clock_of(const study::Run& run) {
  const compute::Device& device = run.machine.device;
  if (!device.power_model.known()) {
    return std::nullopt;
  }
  Clock clock{device.full_clock, device.clock, std::nullopt,
              machine::origin_word(run.machine, "device.power_model.gemm_power")};
  if (run.plan.clocks == plan::Clocks::sustained) {
    clock.cap = compute::cap_of(device).value();
  }
  return clock;
}

void declare_clock(const study::Run& run, Fields& fields) {
  fields.part(
      "clock",
      "where the machine says what its kernels draw: the clock that the power cap leaves "
      "(docs/models/power.md)",
      clock_of(run), [&](const Clock& clock) {
        fields.field("of_full_clock", "share of the device's full clock; 1: the cap is not reached",
                     clock.of_full_clock);
        fields.field("of_kernel_tables", "share that is left of the rates in the kernel tables",
                     clock.of_kernel_tables);
        fields.perhaps("power_cap_w", "watts of a device; left out with clocks boost", clock.cap);
        fields.choice("limited_by", "what holds the clock below the full one", {"power", "nothing"},
                      clock.of_full_clock < 1 ? "power" : "nothing");
        fields.field("origin",
                     "first word of what the machine says of where its kernels' power is from, as "
                     "published or inferred; not stated: nothing",
                     clock.origin);
      });
}

void declare_accesses(std::string_view name, std::string_view sentence,
                      const study::TileAccesses& accesses, Fields& fields) {
  fields.object(name, sentence, [&] {
    fields.field("operand_reads", "reads of the products' operands, bytes", accesses.operand_reads);
    fields.field("reduce_reads", "reads of the reduce-scatters, bytes", accesses.reduce_reads);
    fields.field("writes", "writes of products and reduce-scatters, bytes", accesses.writes);
    fields.field("gather", "reads and writes of the all-gathers, bytes", accesses.gather);
    fields.field("total", "all of them, bytes", accesses.total());
  });
}

void declare_product(const study::OverlappedProduct& one, Fields& fields) {
  fields.field("name", "of the product", one.name);
  fields.field("phase", "forward or backward", one.phase);
  fields.field("m", "rows", one.gemm.m);
  fields.field("n", "columns", one.gemm.n);
  fields.field("k", "inner length", one.gemm.k);
  fields.field("result_bytes", "V, a rank's summand", one.result.value());
  fields.field("times",
               "how often ranks of one tp, cp and dp coordinate run it, over all stages and steps",
               one.times);
  fields.field("product_s", "G, seconds", to_seconds(one.product));
  fields.field("reduce_scatter_s", "R, the ring's steps, seconds", to_seconds(one.reduce_scatter));
  fields.field("exposed_gather_s", "A, the all-gather, which nothing hides, seconds",
               to_seconds(one.all_gather));
  fields.field("sequential_s", "product and collective without overlap, seconds",
               to_seconds(one.sequential));
  fields.field("ideal_s", "max(G, R) + A, seconds", to_seconds(one.ideal));
  fields.field("overlapped_s", "with the technique, seconds", to_seconds(one.overlapped));
  fields.field("bound_by", "product or ring: the longer of G and R",
               one.bound_by_product() ? "product" : "ring");
  declare_accesses("unfused_bytes", "accesses of a rank's memory without overlap", one.unfused,
                   fields);
  declare_accesses("fused_bytes", "accesses with the technique", one.fused, fields);
}

void declare_overlap(const study::Run& run, Fields& fields) {
  fields.part(
      "overlap_tensor",
      "with overlap_tensor: products whose sums follow their tiles (docs/models/t3.md)",
      study::overlap_of(run), [&](const study::StepOverlap& overlap) {
        fields.field("technique", "cu_split, tracked or tracked_mca", name_of(overlap.how));
        fields.field("hypothetical",
                     "what hardware that is not sold the result rests on; empty: none",
                     overlap.hypothetical);
        fields.field("ranks", "N, of tp", overlap.ranks);
        fields.list("products",
                    {"each kind of product", "a product and the sum of its result, alone"},
                    overlap.products,
                    [&](const study::OverlappedProduct& one) { declare_product(one, fields); });
        declare_accesses("unfused_bytes",
                         "accesses without overlap, of all products of a rank of every stage",
                         overlap.unfused, fields);
        declare_accesses("fused_bytes", "accesses with the technique, of the same", overlap.fused,
                         fields);
      });
}

void declare_energy(const study::Run& run, Fields& fields) {
  fields.part("energy", "where the machine states its power", study::energy_of(run),
              [&](const study::StepEnergy& energy) {
                const double total = energy.total().value();
                const double tokens = study::tokens_of(run);
                fields.field("per_step_j", "joules", total);
                fields.field("per_step_kwh", "kilowatt hours", total / kJoulesPerKilowattHour);
                fields.field("average_device_power_w", "watts", energy.average_power(run).value());
                fields.field("per_token_j", "joules", total / tokens);
                fields.field("tokens_per_j", "tokens", tokens / total);
                fields.field("idle_j", "joules of idle devices", energy.idle.value());
                fields.field("kernels_j", "joules of kernels beyond idle", energy.kernels.value());
                fields.field("communication_j", "joules of devices that communicate, beyond idle",
                             energy.communication.value());
                fields.field("lower_memory_j", "joules of transfers to lower memory tiers",
                             energy.lower_memory.value());
                fields.map<double>("links_j",
                                   {"joules of bytes over each dimension of the network", "joules"},
                                   [&](const auto& add) {
                                     for (std::size_t i = 0; i < energy.links.size(); ++i) {
                                       add(run.machine.network[i].name, energy.links[i].value());
                                     }
                                   });
                fields.field("device_memory_j", "joules of device memory, part of kernels_j",
                             energy.device_memory.value());
              });
}

void declare_cost(const study::Run& run, Fields& fields) {
  fields.part("cost", "where the machine states its price", study::cost_of(run),
              [&](const study::StepCost& cost) {
                fields.field("price_per_hour", "dollars of one device",
                             cost.price_per_hour.value());
                fields.field("per_step", "dollars", cost.per_step.value());
                fields.field("per_million_tokens", "dollars", cost.per_million_tokens.value());
              });
}

void declare_simulator(const study::WorkloadRun& run, Fields& fields) {
  fields.object("fold", "which ranks were simulated", [&] {
    fields.field("ranks", "of the job", run.timeline.fold.ranks);
    fields.field("simulated", "ranks, one per class of equal ranks", run.timeline.fold.simulated);
    fields.values("reasons", {"why ranks were not folded", "a reason"}, run.timeline.fold.reasons,
                  [](const std::string& reason) { return reason; });
  });
  fields.field("events", "node completions", run.timeline.events);
  fields.object("timing", "of this computer: differs from run to run", [&] {
    fields.field("wall_s", "seconds that the simulation took", run.wall_s);
    fields.field("events_per_s", "per second of wall_s", events_per_second(run));
    fields.map<double>("passes_s", {"seconds of each pass", "seconds"}, [&](const auto& add) {
      for (const study::PassTime& pass : run.passes) {
        add(pass.name, pass.seconds);
      }
    });
  });
}

}  // namespace

Bytes capacity_of(const study::WorkloadRun& run) {
  const auto& memory = run.machine.device.memory;
  return memory.empty() ? Bytes(0) : memory.front().capacity;
}

double events_per_second(const study::WorkloadRun& run) {
  return run.wall_s > 0 ? static_cast<double>(run.timeline.events) / run.wall_s : 0;
}

void declare(const plan::Plan& plan, Fields& fields) {
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view sentence) {
    const auto& value = plan.*member;
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      fields.field(name, sentence, value);
    } else {
      fields.field(name, sentence, value_text(value));
    }
  });
}

void declare(const study::WorkloadRun& run, Fields& fields) {
  fields.field("name", "what ran: the traces' files", run.name);
  fields.field("machine", "name of the machine", run.machine.name);
  fields.field("devices", "accelerators", run.devices);
  fields.field("network", "model of the network; `orrery list networks`", name_of(run.network));
  fields.field("step_time_s", "seconds of a training step", to_seconds(run.timeline.step_time));
  fields.field("critical_rank", "the rank that finishes last", run.timeline.critical_rank);
  declare_breakdown(run, fields);
  declare_peaks(run, fields);
  declare_simulator(run, fields);
}

void declare(const study::Run& run, Fields& fields) {
  fields.field("model", "name of the model", run.model.name);
  fields.field("machine", "name of the machine", run.machine.name);
  fields.field("devices", "accelerators", run.devices);
  fields.field("network", "model of the network; `orrery list networks`", name_of(run.network));
  fields.field("step_time_s", "seconds of a training step; of several, the mean after the warm-up",
               to_seconds(run.timeline.step_time));
  declare_trust(fields, run.machine,
                study::trust_in(study::causes_of(run.model, run.plan, run.machine)),
                to_seconds(run.timeline.step_time));
  declare_steps(run, fields);
  fields.field("tokens_per_s", "of all devices", run.tokens_per_s);
  fields.field("model_flops_per_device", "FLOP/s, without recomputation",
               run.model_flops_per_device.value());
  fields.field("hardware_flops_per_device", "FLOP/s, with recomputation",
               run.hardware_flops_per_device.value());
  fields.field("peak_type", "data type whose peak mfu and hfu refer to", name_of(run.peak_type));
  fields.field("mfu", "model FLOPs utilisation, attention as the whole square, a share", run.mfu);
  fields.field("causal_mfu",
               "the same where attention counts only the pairs that its masks leave, a share",
               run.mfu * zoo::visible_share(run.model, plan::sequence_of(run.model, run.plan)));
  fields.field("hfu", "hardware FLOPs utilisation, a share", run.hfu);
  fields.field("critical_rank", "the rank that finishes last", run.timeline.critical_rank);
  fields.when(run.plan.lora_rank > 0, "adapter_parameters",
              "with lora_rank: trained ones, of the whole model",
              run.plan.lora_rank > 0 ? plan::adapter_parameters(run.model, run.plan) : 0);
  declare_breakdown(run, fields);
  declare_memory(run, fields);
  declare_memory_timeline(run, fields);
  fields.field("fits", "every stage fits", run.fits);
  declare_clock(run, fields);
  declare_overlap(run, fields);
  declare_energy(run, fields);
  declare_cost(run, fields);
  declare_simulator(run, fields);
  fields.object("plan", "every field of the plan, open ones filled in",
                [&] { declare(run.plan, fields); });
}

void write_plan(JsonWriter& json, const plan::Plan& plan) {
  json.begin_object();
  JsonFields fields(json);
  declare(plan, fields);
  json.end_object();
}

}  // namespace orrery::report
