// SPDX-License-Identifier: Apache-2.0
/// Layouts and formats by their names.
#include <fmt/format.h>

#include "base/lists.h"
#include "serving/plan_search.h"

namespace orrery::serving {

std::string Layout::name() const {
  std::string text = machine + (format.empty() ? "" : " " + format);
  if (engine.prefill > 0) {
    return text + fmt::format(" prefill {}xtp{} decode {}xtp{}", engine.prefill, engine.prefill_tp,
                              engine.replicas, engine.tp);
  }
  text += fmt::format(" tp{}", engine.tp);
  for (const auto& [letter, degree] :
       {std::pair{"pp", engine.pp}, {"dp", engine.dp}, {"ep", engine.ep}, {"ffn", engine.ffn}}) {
    text += degree > 1 ? fmt::format(" {}{}", letter, degree) : "";
  }
  return text;
}

std::string format_names() {
  return joined(kFormats, ", ", &Format::name);
}

Engine with_format(Engine engine, const Format& format) {
  engine.weights = format.weights;
  engine.activations = format.activations;
  engine.kv = format.kv;
  engine.block_scaled = engine.block_scaled && format.weights == graph::DataType::fp8;
  engine.narrow = step::Narrow::all;
  engine.scale_bits = format.scale_bits;
  engine.experts_fp4 = false;
  return engine;
}

}  // namespace orrery::serving
