// SPDX-License-Identifier: Apache-2.0
#include "compat/scale_sim/scale_sim.h"

namespace orrery::scale_sim {

LayerReport report(const Configuration& configuration, const Layer& layer, Compatibility compat) {
  const compute::SystolicArray& array = configuration.array;
  compute::SystolicProblem problem{.shape = layer.gemm};
  if (compat == Compatibility::scale_sim && layer.convolution) {
    problem.shape = compute::gemm_of(*layer.convolution, true);
  }
  if (configuration.sparse) {
    problem.sparsity = layer.sparsity;
    problem.sparsity.format = configuration.format;
  }
  LayerReport report;
  compute::SystolicCost& cost = report.cost;
  cost = compute::systolic_cost(problem, array, configuration.feed.value_or(compute::Feed{}));
  if (!configuration.feed) {
    if (layer.convolution) {
      const compute::Convolution& c = *layer.convolution;
      cost.dram_bytes.input = static_cast<double>(c.height * c.width * c.channels);
    } else {
      cost.dram_bytes.input = static_cast<double>(problem.shape.m * problem.shape.k);
    }
    cost.dram_bytes.output = cost.sram_words.output;
  }
  if (compat == Compatibility::scale_sim) {
    cost.cycles -= 1;
    cost.utilization *= (cost.cycles + 1) / cost.cycles;
    if (array.dataflow == compute::Dataflow::output_stationary) {
      report.padding_words = cost.folds * static_cast<double>(array.rows + array.cols);
      cost.sram_words.output += report.padding_words;
    }
  }
  return report;
}

}  // namespace orrery::scale_sim
