// SPDX-License-Identifier: Apache-2.0
/// One training step, or the mean of several, from descriptions to figures: what `orrery simulate`
/// prints and every table of many runs is made of.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "machine/machine.h"
#include "simulate/simulate.h"
#include "study/workload_run.h"
#include "workload/memory/footprint.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

struct RunOptions {
  bool fold = true;
  bool allow_oom = false;  ///< simulate although a stage exceeds the device's memory
  bool advise = false;     ///< where it exceeds, the error also says what would fit (fit_advice.h)
  bool record_spans = false;
  bool shortcuts = true;          ///< SimulateOptions::shortcuts
  bool record_messages = false;   ///< SimulateOptions::record_messages
  faults::FaultPlan faults = {};  ///< SimulateOptions::faults
  simulate::NetworkModel network = simulate::NetworkModel::ports;
  /// Verify and time after every lowering pass, not only at the end: about 1 ms a pass.
  bool verify_passes = false;
  std::set<std::string> skip = {};  ///< lowering passes to leave out
  bool fuse = false;                ///< LowerOptions::fuse_communication
  /// LowerOptions::steps; 1: of a plan with rounds as many whole ones as round_run() says.
  std::int64_t steps = 1;
  std::int64_t warm_steps = 0;       ///< SimulateOptions::warm_steps
  simulate::Progress progress = {};  ///< of the simulation, or of the advice
};

/// Formulas:
///   tokens_per_s           = global_batch * S / step_time
///   model_flops_per_device = 3 * forward model FLOPs (full S^2, logits) / devices / step_time
///                            (LoRA: 2 * forward, see workload/plan/lora.h)
///   mfu                    = model_flops_per_device / peak(peak_type), the type of the quantised
///                            GEMMs, else compute_type
///   hfu                    = (model FLOPs + recomputed forward FLOPs) / devices / step_time / peak
/// where recomputed forward FLOPs are one more forward of the layers (recompute full) or of their
/// attention cores (selective), counted as model FLOPs are. What a flash kernel recomputes inside
/// its backward is not counted.
/// Source: Narayanan et al., SC'21, eq. 3; Korthikanti et al., MLSys 2023, appendix A; MFU and HFU
/// as Chowdhery et al. (PaLM, 2022), section 4.1.
struct Run : WorkloadRun {
  zoo::Model model;
  plan::Plan plan;
  std::vector<footprint::StageMemory> memory;  ///< by stage
  Bytes capacity{0};
  bool fits = true;
  double tokens_per_s = 0;
  FlopRate model_flops_per_device{0};
  FlopRate hardware_flops_per_device{0};
  graph::DataType peak_type = graph::DataType::bf16;  ///< whose peak rate mfu and hfu are shares of
  double mfu = 0;
  double hfu = 0;
};

/// Returns what keeps the plan from running that needs no simulation and no memory footprint: plan
/// against model, plan against devices, machine and data type. Nothing when it can.
Error plan_mistakes(const zoo::Model& model, const machine::Machine& machine,
                    const plan::Plan& plan, std::int64_t devices);

/// `devices` 0 means plan.devices(). Mistakes, all that can be known together at once: plan against
/// model, plan against devices, machine and data type; then memory (unless allow_oom).
Result<Run> run_step(const zoo::Model& model, const machine::Machine& machine,
                     const plan::Plan& plan, std::int64_t devices, const RunOptions& options);

}  // namespace orrery::study
