// SPDX-License-Identifier: Apache-2.0
/// A pass whose layers' weights go through a window of memory.
#include "serving/step/step_cost.h"

namespace orrery::step {

Time StepCost::through_window(const Rows& rows, Time kernels) const {
  const Bandwidth disk = machine_.device.memory[1].bandwidth;
  const std::int64_t layers = model_.layers;
  const Time first = kernels - rows.outside - rows.second - rows.reducing;
  const BlockTimes times{.attention = first / layers,
                         .mlp = rows.second / layers,
                         .all_reduce = rows.reducing / (2 * layers),
                         .load_attention = first_branch_ / disk,
                         .load_mlp = second_branch_ / disk};
  const WeightWindow window{.layers = layers, .blocks = options_.window, .retain = options_.retain};
  return rows.outside + stream_tokens(window, times, 2).next;
}

}  // namespace orrery::step
