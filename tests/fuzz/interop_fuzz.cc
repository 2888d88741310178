// SPDX-License-Identifier: Apache-2.0
/// Any text as a launch line, as ds_config.json and as a job's TOML: what is imported can be
/// exported, or the export says why not.
#include "tests/fuzz/fuzz.h"
#include "workload/interop/interop.h"

namespace {

using orrery::Result;
using orrery::interop::Imported;

void hold_import(const Result<Imported>& imported) {
  if (!imported) {
    orrery::fuzz::hold_error(imported.error());
    return;
  }
  for (const auto& write : {orrery::interop::export_megatron, orrery::interop::export_deepspeed,
                            orrery::interop::export_torchtitan}) {
    const auto exported = write(imported->plan, {});
    orrery::fuzz::hold(exported.has_value() || !exported.error().empty(), "a refusal says why");
  }
}

}  // namespace

ORRERY_FUZZ(interop) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const orrery::interop::ImportOptions options{.devices = 64};
  if (const auto line = orrery::interop::launch_words(text, "input")) {
    hold_import(orrery::interop::import_megatron(*line, options));
  }
  hold_import(orrery::interop::import_torchtitan(text, "input", options));
  return orrery::fuzz::with_node(bytes, size, orrery::ConfigSyntax::json,
                                 [&](const orrery::ConfigNode& node) {
                                   hold_import(orrery::interop::import_deepspeed(node, options));
                                 });
}
