// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/csv.h"
#include "base/result.h"

namespace orrery::network {

/// Returns a connection matrix of htsim (a .cm file) as a table with the columns source, target,
/// bytes and start_s:
///
///   Nodes N                                    hosts are 0 to N-1
///   Connections M
///   SOURCE->TARGET [id ID] start T size BYTES [prio P]
///
/// Units: T is in picoseconds, which is what htsim's reader makes of it.
/// Ignores: id and prio, which change neither when a flow begins nor its rate.
/// Refuses: triggers, which begin a flow when others end; connections without a size, which never
/// end; numbers of nodes and connections that are not those that the lines have.
/// Source: connection_matrix.cpp of htsim (Broadcom/csg-htsim).
Result<CsvTable> parse_connections(std::string_view text, const std::string& file);

}  // namespace orrery::network
