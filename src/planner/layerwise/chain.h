// SPDX-License-Identifier: Apache-2.0
/// Layers one after the other, each under one of the same strategies: a tensor-parallel degree, a
/// ZeRO stage, recompute, any combination that somebody measured or modelled.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery::layerwise {

/// Costs of a layer; all by strategy.
struct LayerCosts {
  std::string name;
  std::vector<Time> time;
  std::vector<Bytes> memory;
  /// The cost of a change from the layer before: [its strategy][this one's]. Empty: a change costs
  /// nothing.
  std::vector<std::vector<Time>> change;
};

struct Chain {
  std::vector<std::string> strategies;
  std::vector<LayerCosts> kinds;
  std::vector<std::size_t> layers;  ///< kinds, in order

  const LayerCosts& layer(std::size_t index) const { return kinds[layers[index]]; }
  /// Returns the cost of the change into a layer: 0 into the first.
  Time change(std::size_t layer, std::size_t from, std::size_t to) const {
    const LayerCosts& costs = this->layer(layer);
    return layer == 0 || costs.change.empty() ? Time(0) : costs.change[from][to];
  }
};

/// Reads {strategies: [names], repeat: 1, layers: [{name, count: 1, time: [...], memory: [...],
/// change: [[...], ...]}]}: the layers in order, each `count` times, the whole list `repeat` times.
/// Mistakes: unknown fields; lists of another length than the strategies; negative costs; more than
/// 4,096 layers or 256 strategies.
Result<Chain> load_chain(const std::string& file);

}  // namespace orrery::layerwise
