// SPDX-License-Identifier: Apache-2.0
/// Goodput of long jobs, for people and programs.
#pragma once

#include <string>

#include "goodput/job_run.h"
#include "goodput/question.h"
#include "study/run_plan.h"

namespace orrery::report {

/// The answer of `orrery goodput`.
struct GoodputReport {
  const goodput::Asked& asked;
  Duration length{0};      ///< of a life
  std::int64_t seeds = 0;  ///< lives
  goodput::Lives lives;    ///< none where no rate is known
};

/// Whether goodput::expected_goodput() says all about the scenario.
bool is_closed_form(const goodput::Scenario& scenario);

/// The expression where it says all, else the mean over the lives.
double goodput_of(const GoodputReport& report);

/// Tables for a terminal. Without rates: the mean times between failures that reach a goodput.
std::string goodput_table(const GoodputReport& report);

/// One JSON object: devices, mtbf_job_s, goodput, expected_goodput, simulated_goodput, interval80
/// [low, high] of the lives, best_interval_s, young_interval_s, daly_interval_s, interval_s,
/// failures (expected), failures80, checkpoints, time_s by part of a mean life, components,
/// break_even [{goodput, mtbf_device_s}], assumed. What needs a rate is null without one.
std::string goodput_json(const GoodputReport& report);

/// A whole run, for people.
std::string run_plan_table(const study::Run& run, const study::RunPlan& plan,
                           const goodput::Asked& asked, double pue);

/// One JSON object: model, machine, devices, tokens, steps, step_time_s, days, days80, goodput,
/// failures, failures80, checkpoints, interval_s, energy_j, pue, money (dollars), price {per_hour,
/// currency, boundary, source}, reasons of what is null, assumed.
std::string run_plan_json(const study::Run& run, const study::RunPlan& plan,
                          const goodput::Asked& asked, double pue);

}  // namespace orrery::report
