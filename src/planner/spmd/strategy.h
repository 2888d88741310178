// SPDX-License-Identifier: Apache-2.0
/// A program for all devices: stages, each of conversions and then nodes with a signature.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/reader.h"
#include "base/result.h"
#include "base/units.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/prices.h"

namespace orrery::spmd {

/// Nodes of a stage at most, loads too.
inline constexpr int kLongestStage = 11;

struct Communication {
  int tensor = 0;
  Form from;
  Form to;
  friend bool operator==(const Communication&, const Communication&) = default;
};

struct Computation {
  int node = 0;
  int signature = 0;  ///< index into the node's signatures
  friend bool operator==(const Computation&, const Computation&) = default;
};

struct Stage {
  std::vector<Communication> communications;  ///< first
  std::vector<Computation> computations;
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct Strategy {
  std::vector<Stage> stages;

  std::int64_t communications() const;
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// Says where a strategy's time goes: sums over its stages, of both halves, forward and backward.
/// Communication that hides behind compute counts in both, so the parts may exceed the total.
struct StrategyCost {
  Time total{0};
  Time compute{0};
  Time penalty{0};             ///< of our cost: the optimizer
  std::vector<Time> by_stage;  ///< by how much each moves the clock
  struct Kind {
    std::int64_t forward_count = 0;
    std::int64_t backward_count = 0;
    Time forward{0};
    Time backward{0};
  };
  /// Counts conversions by Operation; both halves of one count once.
  std::array<Kind, kNames<Operation>.size()> kinds{};
};

/// Returns the time of a given strategy, by executing its stages. Mistakes, all at once: nodes that
/// are not in order, missing or twice, signatures that do not exist or whose input forms are not
/// there; conversions that are illegal, of a tensor made in the stage, converted before or in
/// another form; stages that are empty or too long.
Result<StrategyCost> replay(const OperatorGraph& graph, const Strategy& strategy,
                            const Prices& prices);

/// Reads a form that a file's field names.
Form read_form(Reader& read, std::string_view field);

inline constexpr std::string_view kStrategyFormat = "spmd-strategy/1";

/// Reads "spmd-strategy/1": {stages: [{communications: [{tensor, from, to}], computations: [{node,
/// signature}]}]}; other fields of the header are described in docs/models/spmd.md.
Result<Strategy> read_strategy(const ConfigNode& root);
Result<Strategy> load_strategy(const std::string& file);

}  // namespace orrery::spmd
