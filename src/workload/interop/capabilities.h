// SPDX-License-Identifier: Apache-2.0
/// Capabilities say what a training framework can run, as one table: framework x plan field. A
/// search for a framework looks at what the table allows, exporters give its sentences as reasons,
/// and a plan that it allows survives export and import.
///
///   strategy fields   degrees, schedule, exchanges, sharding, recompute, offload, overlaps: a row
///                     where a framework cannot run every value
///   other fields      kernels and costs of the software (plan/framework.h): a plan has those of
///                     its framework
///
/// Releases: Megatron core 0.14 (megatron/training/arguments.py, core/transformer/
/// transformer_config.py), which NeMo and Megatron-Bridge run; torchtitan 0.2; DeepSpeed 0.18 with
/// ds_config.json alone. A release behind `@` changes the other fields, not these.
///
/// Ignores:  models that a framework does not implement; limits of its kernels.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/interop/interop.h"

namespace orrery::interop {

/// A LaunchFormat is a framework whose runs plans can be exported to.
struct LaunchFormat {
  std::string_view name;  ///< as in `orrery export` and configs/frameworks
  std::string_view file;  ///< "launch.sh", what an export is called
  Result<Exported> (*write)(const plan::Plan& plan, const ExportOptions& options) = nullptr;
};
std::span<const LaunchFormat> launchers();

/// Returns the launcher of "NAME" or "NAME@RELEASE"; null: none has that name.
const LaunchFormat* launcher_named(std::string_view framework);

/// Returns "megatron, nemo, torchtitan, deepspeed".
std::string launcher_names();

/// Returns the fields that the launcher cannot run as the plan has them, each with what it can.
/// Nothing: it runs the plan. `model`: for shares of its layers; may be null.
std::vector<Remark> incapable(std::string_view launcher, const plan::Plan& plan,
                              const zoo::Model* model);
bool can_run(std::string_view launcher, const plan::Plan& plan, const zoo::Model* model);

/// Gives those fields that `is_open` and that the launcher decides from others the values it has.
void impose(std::string_view launcher, plan::Plan& plan,
            const std::function<bool(std::string_view field)>& is_open);

/// Adds to what an export lost, where a row of the table is about it, what the launcher can.
void give_reasons(std::string_view launcher, const plan::Plan& plan, const zoo::Model* model,
                  std::vector<Remark>& lost);

/// Returns a plan with what its framework (plan/framework.h) has and nothing else, with which an
/// import of its launch begins; without a framework a plain plan.
plan::Plan rest_of(const std::string& framework);

}  // namespace orrery::interop
