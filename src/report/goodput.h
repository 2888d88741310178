// SPDX-License-Identifier: Apache-2.0
/// Goodput of long jobs, for people and programs.
#pragma once

#include <string>

#include "goodput/job_run.h"
#include "goodput/question.h"
#include "report/fields.h"
#include "study/run_plan.h"

namespace orrery::report {

/// The answer of `orrery goodput`.
struct GoodputReport {
  const goodput::Asked& asked;
  Duration length{0};      ///< of a life
  std::int64_t seeds = 0;  ///< lives
  goodput::Lives lives;    ///< none where no rate is known
};

/// Returns whether goodput::expected_goodput() says all about the scenario.
bool is_closed_form(const goodput::Scenario& scenario);

/// Returns the expression where it says all, else the mean over the lives.
double goodput_of(const GoodputReport& report);

/// Tables for a terminal. Without rates: the mean times between failures that reach a goodput.
std::string goodput_table(const GoodputReport& report);

/// Declares docs/schema/goodput.json. What needs a rate is null or left out without one.
void declare(const GoodputReport& report, Fields& fields);

/// A whole run, for people.
std::string run_plan_table(const study::Run& run, const study::RunPlan& plan,
                           const goodput::Asked& asked, double pue);

/// Declares what a step says of a whole run of work alone (`whole_run`).
void declare(const study::RunPlan& plan, Fields& fields);

/// Declares docs/schema/run-plan.json.
void declare(const study::Run& run, const study::RunPlan& plan, const goodput::Asked& asked,
             double pue, Fields& fields);

}  // namespace orrery::report
