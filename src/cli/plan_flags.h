// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/step_flags.h"
#include "study/settings.h"
#include "workload/plan/defaults.h"

namespace orrery::cli {

/// --plan and one flag for every field of a Plan, made from Plan::fields, also under the names of
/// frameworks (aliases.h). A flag wins over the file and is read by the same rules; its mistakes
/// are named after the flag.
class PlanFlags {
 public:
  /// Declares the flags. `with_file`: also declares --plan. `alone`: what is not given has its
  /// default, and the help text says which; otherwise something else decides.
  void declare(Options& options, bool with_file, bool alone);

  /// Returns the flags that were given, in the order of Plan::fields.
  std::vector<study::Setting> settings() const;

  /// --plan and flags are mistakes beside `--other`, which wants none.
  void refuse(const std::string& other, Error& mistakes) const;

  /// Returns the text of a field's flag, as if it had not been given.
  std::optional<std::string> take(std::string_view field);

  /// Returns the file's plan (`name`, which mistakes call `where`; else --plan, else nothing) with
  /// the flags over it.
  plan::PlacedPlan placed_plan(Error& mistakes,
                               const std::optional<std::string>& name = std::nullopt,
                               const std::string& where = "show plan") const;

  /// Returns the plan, with what the flags leave open as usual (plan/defaults.h). Null, 0: not
  /// known. Where there are mistakes already, it stays open.
  plan::Plan plan(const zoo::Model* model, const machine::Machine* machine, std::int64_t devices,
                  Error& mistakes) const;

  /// Returns `base` with the flags over it.
  plan::Plan over(plan::Plan base, Error& mistakes) const;

 private:
  std::optional<std::string> file_;
  std::map<std::string, std::optional<std::string>, std::less<>> given_;  ///< text by field name
};

/// Notes a sequence that nobody gave and that is longer than pre-training commonly takes: the
/// longest of the model.
void tell_long_sequence(const zoo::Model& model, const plan::Plan& plan);

/// A step and the plan by which it runs.
struct PlannedStep : StepInput {
  plan::PlacedPlan plan;
};

/// Reads both. Where each of them was read, also every reason why the plan cannot run, whatever
/// else is wrong with the command line.
PlannedStep read_planned_step(const StepFlags& step, const PlanFlags& plan, Error& mistakes);

}  // namespace orrery::cli
