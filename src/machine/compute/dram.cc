// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/dram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "base/format.h"

namespace orrery::compute {
namespace {

constexpr std::size_t kWindow = 4;  // activates in t_faw

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
      if (activates_.size() >= kWindow) {
        from = std::max(from, activates_[activates_.size() - kWindow] + device_.t_faw);
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

}  // namespace

std::vector<IssuedCommand> dram_commands(const PimDevice& device, Time column, std::int64_t columns,
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

std::vector<std::string> broken_timings(const std::vector<IssuedCommand>& trace,
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

Time activate_spread(const PimDevice& device) {
  if (!device.banks_in_turn) {
    return Time(0);
  }
  std::vector<Time> at;
  for (std::int64_t bank = 0; bank < device.banks; ++bank) {
    Time from = at.empty() ? Time(0) : at.back() + device.t_rrd;
    if (at.size() >= kWindow) {
      from = std::max(from, at[at.size() - kWindow] + device.t_faw);
    }
    at.push_back(from);
  }
  return at.back();
}

Time row_time(const PimDevice& device, Time column, std::int64_t columns) {
  return activate_spread(device) + std::max(device.t_ras, device.t_rcd + column * columns) +
         device.t_rp;
}

}  // namespace orrery::compute
