// SPDX-License-Identifier: Apache-2.0
/// Commands of one DRAM channel whose banks multiply, each as early as the timings allow.
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
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "machine/compute/pim_device.h"

namespace orrery::compute {

enum class DramCommand : std::uint8_t { activate, multiply, precharge, refresh };
constexpr auto named_values(DramCommand) {
  return std::to_array<Named<DramCommand>>({
      {DramCommand::activate, "ACT", "opens a row"},
      {DramCommand::multiply, "MAC", "a column of every bank's row into its units"},
      {DramCommand::precharge, "PRE", "closes the rows of all banks"},
      {DramCommand::refresh, "REF", "of all banks"},
  });
}

inline constexpr std::int64_t kAllBanks = -1;
struct IssuedCommand {
  DramCommand command = DramCommand::activate;
  std::int64_t bank = kAllBanks;
  Time at{0};
};

/// All commands of a product whose banks each multiply `columns` columns from rows of
/// `columns_per_row`, rows one after the other; a refresh before the first row that begins t_refi
/// or more after the last one. The last command is a PRE.
/// Requires: columns >= 1, columns_per_row >= 1.
std::vector<IssuedCommand> dram_commands(const PimDevice& device, Time column, std::int64_t columns,
                                         std::int64_t columns_per_row);

/// Every rule that a trace breaks, as a sentence: "ACT of bank 4 at 12 ns: 4 ns after ...".
std::vector<std::string> broken_timings(const std::vector<IssuedCommand>& trace,
                                        const PimDevice& device, Time column);

/// From the first to the last ACT of a row: 0 unless banks_in_turn.
Time activate_spread(const PimDevice& device);
/// From ACT to the next row's ACT, of a row of `columns` columns:
///   spread + max(t_ras, t_rcd + columns t_ccd) + t_rp
Time row_time(const PimDevice& device, Time column, std::int64_t columns);

}  // namespace orrery::compute
