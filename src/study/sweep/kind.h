// SPDX-License-Identifier: Apache-2.0
/// A Kind is what a study runs at each of its points. A new kind is a file with its two functions
/// and a line in kKinds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "collective/chimera/prices.h"
#include "study/sweep/cell.h"
#include "study/sweep/config_path.h"

namespace orrery::sweep {

/// An Outcome is what a point gave: a cell for each of the kind's figures, and why it has none (or,
/// of a plan that does not fit, only some).
struct Outcome {
  std::vector<Cell> figures;
  std::string error;
};

/// Shared is what the points of a run may share: values of pure functions, so that no result
/// depends on it.
struct Shared {
  chimera::Prices chimera_prices;
};

/// A point ready to run.
struct Prepared {
  /// All that the outcome depends on beside the program: model, machine and plan with every default
  /// filled in. Of what cannot be read the description itself.
  std::string inputs;
  Error mistakes;                       ///< of reading; run() is empty then
  std::function<Outcome(Shared&)> run;  ///< may run on any thread
};

struct KindEntry {
  std::string_view name;
  std::string_view sentence;
  std::span<const std::string_view> fields;   ///< that its description has
  std::span<const std::string_view> files;    ///< of them: a name, a file, or the file's fields
  std::span<const std::string_view> figures;  ///< columns of its results
  Prepared (*prepare)(const ConfigNode& description);
};

/// Kinds that have files have these.
inline constexpr auto kUsualFiles =
    std::to_array<std::string_view>({"model", "machine", "plan", "engine"});

inline constexpr auto kSimulateFields = std::to_array<std::string_view>(
    {"model", "machine", "plan", "devices", "network", "fuse", "allow_oom"});
inline constexpr auto kSimulateFigures = std::to_array<std::string_view>(
    {"total_devices", "step_time_s", "tokens_per_s", "mfu", "hfu", "model_flops_per_device",
     "memory_bytes", "capacity_bytes", "fits", "energy_per_step_j", "cost_per_million_tokens"});
Prepared prepare_simulate(const ConfigNode& description);  // simulate_kind.cc

inline constexpr auto kCollectiveFields =
    std::to_array<std::string_view>({"machine", "collective", "network"});
inline constexpr auto kCollectiveFigures =
    std::to_array<std::string_view>({"time_s", "algbw", "busbw", "taken_algorithm", "protocol"});
Prepared prepare_collective(const ConfigNode& description);  // collective_kind.cc

inline constexpr auto kFusionFields = std::to_array<std::string_view>({"machine", "fusion"});
inline constexpr auto kFusionFigures =
    std::to_array<std::string_view>({"base_s", "fused_s", "speedup", "base_bytes", "fused_bytes",
                                     "fused_steps", "speedup_published"});
Prepared prepare_fusion(const ConfigNode& description);  // fusion_kind.cc

inline constexpr auto kChimeraFields = std::to_array<std::string_view>({"chimera"});
inline constexpr auto kChimeraFigures = std::to_array<std::string_view>(
    {"base_cycles", "fused_cycles", "speedup", "artifact_base_cycles", "artifact_fused_cycles",
     "artifact_speedup"});
Prepared prepare_chimera(const ConfigNode& description);  // chimera_kind.cc

inline constexpr auto kChimeraTrainingFigures = std::to_array<std::string_view>(
    {"base_cycles", "fused_cycles", "speedup", "segment_base_cycles", "segment_fused_cycles",
     "segment_speedup"});
Prepared prepare_chimera_training(const ConfigNode& description);  // chimera_kind.cc

inline constexpr auto kPlanFields = std::to_array<std::string_view>(
    {"model", "machine", "plan", "devices", "only", "reserve", "estimates", "objective"});
inline constexpr auto kPlanFigures = std::to_array<std::string_view>(
    {"step_time_s", "tokens_per_s", "mfu", "memory_bytes", "energy_per_step_j",
     "cost_per_million_tokens", "gap", "best", "candidates", "estimated", "complete"});
Prepared prepare_plan(const ConfigNode& description);  // plan_kind.cc

inline constexpr auto kServeFields = std::to_array<std::string_view>(
    {"model", "machine", "engine", "kernels", "requests", "max_concurrency", "slo"});
inline constexpr auto kServeFigures =
    std::to_array<std::string_view>({"devices",
                                     "requests_per_s",
                                     "output_tokens_per_s",
                                     "total_tokens_per_s",
                                     "output_tokens_per_s_per_device",
                                     "output_tokens_per_s_per_user",
                                     "ttft_mean_s",
                                     "ttft_p99_s",
                                     "tpot_mean_s",
                                     "tpot_p99_s",
                                     "itl_p99_s",
                                     "e2e_mean_s",
                                     "e2e_p99_s",
                                     "attainment",
                                     "completed",
                                     "refused",
                                     "rejected",
                                     "preemptions",
                                     "peak_kv_use",
                                     "energy_j",
                                     "cost_per_million_tokens"});
Prepared prepare_serve(const ConfigNode& description);  // serve_kind.cc

inline constexpr auto kAstraFields =
    std::to_array<std::string_view>({"workload", "system", "network", "memory", "groups", "backend",
                                     "queues", "injection_scale", "rendezvous", "quirks_off"});
inline constexpr auto kAstraFiles =
    std::to_array<std::string_view>({"system", "network", "memory"});
inline constexpr auto kAstraFigures =
    std::to_array<std::string_view>({"ranks", "time_s", "exposed_s", "messages"});
Prepared prepare_astra(const ConfigNode& description);  // astra_kind.cc

inline constexpr auto kSpmdFields = std::to_array<std::string_view>({"machine", "spmd"});
inline constexpr auto kSpmdFigures =
    std::to_array<std::string_view>({"optimum_s", "simulated_s", "compute_s", "memory_bytes",
                                     "stages", "communications", "states", "search_s"});
Prepared prepare_spmd(const ConfigNode& description);  // spmd_kind.cc

inline constexpr std::array kKinds{
    KindEntry{"simulate", "one training step, as `orrery simulate`", kSimulateFields, kUsualFiles,
              kSimulateFigures, prepare_simulate},
    KindEntry{"collective", "one collective of one size, as `orrery collective`", kCollectiveFields,
              kUsualFiles, kCollectiveFigures, prepare_collective},
    KindEntry{"fusion", "a pair of parallelisms, base and fused, as `orrery fuse --pair`",
              kFusionFields, kUsualFiles, kFusionFigures, prepare_fusion},
    KindEntry{"chimera", "a pair on Chimera's flit networks, cycle by cycle", kChimeraFields,
              kUsualFiles, kChimeraFigures, prepare_chimera},
    KindEntry{"chimera_training", "a model's passes on Chimera's flit networks, cycle by cycle",
              kChimeraFields, kUsualFiles, kChimeraTrainingFigures, prepare_chimera_training},
    KindEntry{"plan", "the fastest plan, as `orrery plan`", kPlanFields, kUsualFiles, kPlanFigures,
              prepare_plan},
    KindEntry{"serve", "an engine that serves requests, as `orrery serve`", kServeFields,
              kUsualFiles, kServeFigures, prepare_serve},
    KindEntry{"astra", "traces on ASTRA-sim's system, as `orrery astra`", kAstraFields, kAstraFiles,
              kAstraFigures, prepare_astra},
    KindEntry{"spmd", "the fastest program that all devices run, as `orrery spmd`", kSpmdFields,
              kUsualFiles, kSpmdFigures, prepare_spmd},
};

std::vector<std::string> kind_names();

/// Returns the outcome of a point that has figures for none of `columns`.
Outcome refused(std::size_t columns, const Error& why);

/// Ready to run, or its mistakes. `run` is given what was read and what points share, with inputs
/// that are all in `description`.
template <class T, class Run>
Prepared prepared(Result<T> read, const ConfigNode& description, Run run) {
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto on = std::make_shared<T>(std::move(*read));
  return {.inputs = canonical_text(description), .mistakes = {}, .run = [on, run](Shared& shared) {
            return run(*on, shared);
          }};
}

/// Returns mistakes without the places of their fields: where a field stands in a study's file is
/// no part of a result, since the file changes and its results stay.
Error without_places(Error mistakes);

}  // namespace orrery::sweep
