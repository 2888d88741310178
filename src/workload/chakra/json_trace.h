// SPDX-License-Identifier: Apache-2.0
/// Chakra JSON -> records.
#pragma once

#include <string_view>

#include "workload/chakra/mistakes.h"
#include "workload/chakra/program_builder.h"

namespace orrery::chakra {

/// Reads a whole JSON trace, from begin() of the builder to finish(), or to what cannot be read.
///
///   {"version": "0.0.4"} {"id": "1", "name": "a", "type": "COMP_NODE", "attr": [...]} ...
///
/// which is protobuf's JSON mapping of GlobalMetadata and Nodes, as chakra_jsonizer writes it:
/// objects one after the other, or in a list. Field names as in the schema or in lowerCamelCase,
/// whole numbers bare or quoted, enumerations by name or number. And
///
///   {"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5, "data_deps": []}]}
///
/// which Chakra's feeder reads; attributes are fields there, and ctrl_deps may be too (also
/// ctrlDeps). Mistakes name the line; unknown fields
/// are mistakes. A Kineto trace is read as kineto_trace.h says. PyTorch's execution trace
/// (ExecutionTraceObserver) is refused with what to run: it has no durations of kernels.
void read_json_trace(std::string_view text, ProgramBuilder& builder, Mistakes& mistakes);

}  // namespace orrery::chakra
