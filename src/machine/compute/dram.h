// SPDX-License-Identifier: Apache-2.0
/// Computes times of rows of a DRAM channel whose banks multiply, each command as early as it may
/// be.
///
///   ACT(b)   t_rp after PRE, t_rfc after REF; t_rrd after the last ACT, t_faw after the fourth
///            last; without banks_in_turn one ACT opens all banks and neither counts
///   MAC      t_rcd after every bank's ACT, a column (t_ccd) after the last MAC; all banks at once
///   PRE      all banks: t_ras after every ACT, a column after the last MAC
///   REF      t_rp after PRE
///
/// Ignores:  write recovery, read to precharge, bank groups (MAC is one column apart in all banks).
/// Source:   JEDEC GDDR6 (JESD250) for what the timings mean; the commands are those of SK hynix's
///           AiM: ACTAB, MACAB, PREAB (Lee et al., ISSCC 2022).
#pragma once

#include <cstdint>

#include "base/units.h"
#include "machine/compute/pim_device.h"

namespace orrery::compute {

/// Returns the time from the first to the last ACT of a row: 0 unless banks_in_turn.
Time activate_spread(const PimDevice& device);
/// Returns the time from ACT to the next row's ACT, of a row of `columns` columns:
///   spread + max(t_ras, t_rcd + columns t_ccd) + t_rp
Time row_time(const PimDevice& device, Time column, std::int64_t columns);

}  // namespace orrery::compute
