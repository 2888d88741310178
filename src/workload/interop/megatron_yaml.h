// SPDX-License-Identifier: Apache-2.0
/// Configurations in YAML that hold Megatron-LM's arguments: NeMo, Megatron-Bridge, Primus. Internal to
/// this folder.
#pragma once

#include <string_view>

#include "workload/interop/interop.h"

namespace orrery::interop {

/// The keys become the words of a launch line, which import_megatron() reads: true is a switch, false
/// and null leave it out, keys of another name are renamed (megatron_yaml_tables.cc). Devices:
/// trainer.devices x trainer.num_nodes, where the file has them.
/// `framework`: nemo or primus.
Result<Imported> import_megatron_yaml(std::string_view framework, const ConfigNode& node,
                                      const ImportOptions& options);

}  // namespace orrery::interop
