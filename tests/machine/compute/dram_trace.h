// SPDX-License-Identifier: Apache-2.0
/// The commands of a DRAM channel one by one, by the rules of machine/compute/dram.h: what its
/// times of rows are held to.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/names.h"
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

inline constexpr std::size_t kActivatesInWindow = 4;  ///< of t_faw

/// Channel keeps what has been issued, and when what may be issued next.
class Channel {
 public:
  Channel(const PimDevice& device, Time column) : device_(device), column_(column) {}

  Time earliest(DramCommand command) const {
    switch (command) {
      case DramCommand::activate:
        return activate_from();
      case DramCommand::multiply: {
        const Time opened = activates_.empty() ? Time(0) : activates_.back() + device_.t_rcd;
        return std::max(opened, multiplied_ ? *multiplied_ + column_ : Time(0));
      }
      case DramCommand::precharge: {
        const Time open = activates_.empty() ? Time(0) : activates_.back() + device_.t_ras;
        return std::max(open, multiplied_ ? *multiplied_ + column_ : Time(0));
      }
      case DramCommand::refresh:
        return closed_ ? *closed_ + device_.t_rp : Time(0);
    }
    return Time(0);
  }

  void issue(DramCommand command, Time at) {
    switch (command) {
      case DramCommand::activate:
        activates_.push_back(at);
        break;
      case DramCommand::multiply:
        multiplied_ = at;
        break;
      case DramCommand::precharge:
        closed_ = at;
        break;
      case DramCommand::refresh:
        refreshed_ = at;
        break;
    }
  }

 private:
  Time activate_from() const {
    Time from = closed_ ? *closed_ + device_.t_rp : Time(0);
    if (refreshed_) {
      from = std::max(from, *refreshed_ + device_.t_rfc);
    }
    if (device_.banks_in_turn && !activates_.empty()) {
      from = std::max(from, activates_.back() + device_.t_rrd);
      if (activates_.size() >= kActivatesInWindow) {
        from = std::max(from, activates_[activates_.size() - kActivatesInWindow] + device_.t_faw);
      }
    }
    return from;
  }

  const PimDevice& device_;
  Time column_;
  std::vector<Time> activates_;
  std::optional<Time> multiplied_;
  std::optional<Time> closed_;
  std::optional<Time> refreshed_;
};

/// All commands of a product whose banks each multiply `columns` columns from rows of
/// `columns_per_row`, rows one after the other; a refresh before the first row that begins t_refi
/// or more after the last one. The last command is a PRE.
/// Requires: columns >= 1, columns_per_row >= 1.
inline std::vector<IssuedCommand> dram_commands(const PimDevice& device, Time column,
                                                std::int64_t columns,
                                                std::int64_t columns_per_row) {
  assert(columns >= 1 && columns_per_row >= 1);
  Channel channel(device, column);
  std::vector<IssuedCommand> trace;
  const auto issue = [&](DramCommand command, std::int64_t bank) {
    const Time at = channel.earliest(command);
    channel.issue(command, at);
    trace.push_back({command, bank, at});
  };
  Time refresh_due = device.t_refi;
  for (std::int64_t left = columns; left > 0; left -= columns_per_row) {
    if (device.t_refi > Time(0) && channel.earliest(DramCommand::activate) >= refresh_due) {
      issue(DramCommand::refresh, kAllBanks);
      refresh_due += device.t_refi;
    }
    for (std::int64_t bank = 0; bank < (device.banks_in_turn ? device.banks : 1); ++bank) {
      issue(DramCommand::activate, device.banks_in_turn ? bank : kAllBanks);
    }
    for (std::int64_t i = 0; i < std::min(left, columns_per_row); ++i) {
      issue(DramCommand::multiply, kAllBanks);
    }
    issue(DramCommand::precharge, kAllBanks);
  }
  return trace;
}

/// Every rule that a trace breaks, as a sentence: "ACT of bank 4 at 12 ns: 4 ns after ...".
inline std::vector<std::string> broken_timings(const std::vector<IssuedCommand>& trace,
                                               const PimDevice& device, Time column) {
  std::vector<std::string> broken;
  Channel channel(device, column);
  Time last{0};
  for (const IssuedCommand& command : trace) {
    const Time from = std::max(last, channel.earliest(command.command));
    if (command.at < from) {
      broken.push_back(fmt::format("{} at {}: not before {}", name_of(command.command),
                                   to_string(command.at), to_string(from)));
    }
    if (command.command == DramCommand::activate && command.bank == kAllBanks &&
        device.banks_in_turn) {
      broken.push_back(
          fmt::format("ACT of all banks at {}: t_faw allows four", to_string(command.at)));
    }
    channel.issue(command.command, command.at);
    last = command.at;
  }
  return broken;
}

}  // namespace orrery::compute
