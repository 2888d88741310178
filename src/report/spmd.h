// SPDX-License-Identifier: Apache-2.0
/// `orrery spmd` prints and saves these texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spmd/fixed.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/mixed.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/search.h"
#include "planner/spmd/strategy.h"
#include "report/fields.h"

namespace orrery::report {

struct SpmdRun {
  spmd::OperatorGraph graph;
  std::int64_t devices = 1;
  std::string cost;     ///< "hidup", "orrery", "mixed"
  std::string machine;  ///< name of the profile or machine
  spmd::Overlap overlap = spmd::Overlap::forward;
  std::optional<spmd::FixedStrategy> fixed;  ///< to which the search was restricted
  bool given = false;                        ///< the strategy was given, not searched
  spmd::Strategy strategy;
  spmd::StrategyCost strategy_cost;
  std::optional<Time> simulated;            ///< of the strategy, on the simulator
  Bytes memory{0};                          ///< of one device
  std::optional<Bytes> limit;               ///< on that
  std::optional<Time> bound;                ///< no strategy within the limit is faster
  std::vector<spmd::MemoryPoint> frontier;  ///< time against memory; empty: not asked for
  std::optional<spmd::MixedDevices> mixed;  ///< of cost mixed
  std::vector<double> shares;               ///< of its devices
  spmd::SearchCounts counts;
  double search_seconds = 0;  ///< wall clock
  struct Other {
    spmd::FixedStrategy strategy;
    std::optional<Time> time{};  ///< none: it does not exist here
    std::optional<Time> simulated{};
  };
  std::vector<Other> others;  ///< well-known strategies for comparison
};

/// Returns text for a terminal: the time, what is communicated, the well-known strategies, the
/// stages.
std::string spmd_table(const SpmdRun& run);
/// Declares docs/schema/spmd.json.
void declare(const SpmdRun& run, Fields& fields);
/// Returns "annotated-graph/1", which spmd::load_graph reads back.
std::string graph_json(const spmd::OperatorGraph& graph);
/// Returns "spmd-strategy/1", which spmd::load_strategy reads back.
std::string strategy_json(const SpmdRun& run);

}  // namespace orrery::report
