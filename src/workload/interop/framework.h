// SPDX-License-Identifier: Apache-2.0
/// Plans from the YAML of training frameworks whose keys are tables (framework_tables.cc).
///
///   accelerate       `accelerate config`: FSDP, DeepSpeed or DDP, processes, mixed precision
///   trainer          arguments of Hugging Face's Trainer, TRL and alignment-handbook
///   axolotl, llama-factory, llm-foundry, maxtext   their own configurations
///   nemo             a NeMo or Megatron-Bridge configuration, as dumped by a run
///   primus           modules.pre_trainer.overrides
/// The last two hold Megatron-LM's arguments under its names: they are read as a launch line, and
/// give its config.json too (megatron_yaml.cc).
///
/// A key is a plan field, without weight, noted (a remark), or a mistake. An unknown one is a
/// remark where its value is false, null, 0 or empty, or where nothing in its name says that it may
/// matter (framework_tables.h); else a mistake with a guess. `${a.b}` is the value of another key,
/// `${NAME:default}` the default.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/interop/interop.h"

namespace orrery::interop {

struct FrameworkFormat {
  std::string_view name;
  std::string_view title;
};
std::span<const FrameworkFormat> framework_formats();

/// Imports a plan. `overrides`: words a.b.c=value, as on the command lines of these frameworks;
/// `~a.b` removes a key. Mistakes: what a row of the table refuses; unknown keys; devices, batch or
/// degrees that do not fit together.
Result<Imported> import_framework(std::string_view name, ConfigNode node,
                                  const std::vector<std::string>& overrides,
                                  const ImportOptions& options);

}  // namespace orrery::interop
