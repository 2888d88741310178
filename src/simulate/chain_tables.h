// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/workload.h"
#include "simulate/bind.h"
#include "simulate/chain.h"
#include "simulate/rank_state.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// ChainTables finds the chains (chain.h) of each template when it is first issued.
class ChainTables {
 public:
  /// Everything must outlive it.
  ChainTables(const graph::Workload& workload, Binding& bound, const Wiring& wiring,
              Transport& transport)
      : workload_(workload),
        bound_(bound),
        wiring_(wiring),
        transport_(transport),
        tables_(workload.programs.size()) {}

  const ChainTable& of(std::size_t program, int template_index, const LedgerRows& rows,
                       const std::vector<RankState>& ranks) {
    std::vector<std::unique_ptr<ChainTable>>& tables = tables_[program];
    const auto number = static_cast<std::size_t>(template_index);
    if (number >= tables.size()) {
      tables.resize(number + 1);
    }
    if (tables[number] == nullptr) {
      const std::vector<bool> serial =
          serial_streams(workload_.programs[program].templates, workload_.streams.size());
      const auto undisturbed = [&](const BoundNode& node) {
        return time_alone(program, node, ranks);
      };
      tables[number] = std::make_unique<ChainTable>(
          find_chains(bound_.shape(program, template_index), rows, serial, undisturbed));
    }
    return *tables[number];
  }

 private:
  /// Returns the time of a collective that nothing can disturb on any rank of the program; 0 where
  /// it does nothing.
  std::optional<Time> time_alone(std::size_t program, const BoundNode& node,
                                 const std::vector<RankState>& ranks) {
    std::optional<Time> same;
    for (RankIndex rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].program != program) {
        continue;
      }
      const CommunicatorIndex communicator = wiring_.communicator_of(rank, node.group);
      const bool idle = communicator == Wiring::kNone ||
                        bound_.phases(node.collective, ranks[rank].number).empty();
      const std::optional<Time> alone =
          idle ? std::optional(Time(0)) : transport_.undisturbed(communicator, node.collective);
      if (!alone || (!idle && *alone == Time(0)) || (same && *same != *alone)) {
        return std::nullopt;
      }
      same = alone;
    }
    return same;
  }

  const graph::Workload& workload_;
  Binding& bound_;
  const Wiring& wiring_;
  Transport& transport_;
  std::vector<std::vector<std::unique_ptr<ChainTable>>> tables_;  ///< [program][template]
};

}  // namespace orrery::simulate
