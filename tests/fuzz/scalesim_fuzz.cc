// SPDX-License-Identifier: Apache-2.0
/// Any bytes as SCALE-Sim's configuration and as its topology: a reason, or an array and layers
/// whose figures are sound.
#include <cmath>

#include "compat/scalesim/files.h"
#include "tests/fuzz/fuzz.h"

namespace orrery::scalesim {
namespace {

using fuzz::hold;

void hold_report(const Configuration& configuration, const Layer& layer) {
  for (const Compatibility compat : {Compatibility::none, Compatibility::scale_sim}) {
    const compute::SystolicCost cost = report(configuration, layer, compat).cost;
    hold(std::isfinite(cost.cycles) && cost.cycles >= 0, "cycles are a number");
    hold(cost.stall_cycles >= 0 && cost.stall_cycles <= cost.cycles + 1, "a stall is a part");
    hold(cost.mapping_efficiency > 0 && cost.mapping_efficiency <= 1, "an efficiency is a share");
  }
}

Configuration small() {
  Configuration configuration;
  configuration.array = {
      .rows = 16, .cols = 8, .input_sram = 1_KiB, .filter_sram = 1_KiB, .output_sram = 1_KiB};
  configuration.sparse = true;
  configuration.feed = compute::Feed{1, 2, 3};
  return configuration;
}

}  // namespace
}  // namespace orrery::scalesim

ORRERY_FUZZ(scalesim) {
  using namespace orrery::scalesim;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto configuration = parse_configuration(text, "input");
  const auto layers = parse_topology(text, "input");
  if (configuration) {
    hold_report(*configuration,
                Layer{.name = {}, .convolution = {}, .gemm = {1, 40, 50, 60}, .sparsity = {2, 4}});
  } else {
    orrery::fuzz::hold_error(configuration.error());
  }
  if (layers) {
    for (const Layer& layer : *layers) {
      hold_report(small(), layer);
    }
  } else {
    orrery::fuzz::hold_error(layers.error());
  }
  return 0;
}
