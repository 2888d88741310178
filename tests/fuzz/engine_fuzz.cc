// SPDX-License-Identifier: Apache-2.0
/// Any document as an engine of `orrery serve`: the engine, which written is read back equal, or a
/// reason; and as the config.json of a quantised checkpoint.
#include "serving/engine.h"
#include "serving/step/quantization.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(engine) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::yaml, [](const orrery::ConfigNode& node) {
        const auto formats = orrery::step::quantization_of(node);
        if (!formats) {
          orrery::fuzz::hold_error(formats.error());
        } else if (*formats) {
          orrery::fuzz::hold((*formats)->scale_bits >= 0 && (*formats)->scale_bits <= 32,
                             "scales are smaller than weights in 32 bits");
        }
        const auto engine = orrery::serving::parse_engine(node);
        if (!engine) {
          orrery::fuzz::hold_error(engine.error());
          return;
        }
        const std::string text = orrery::serving::to_yaml(*engine);
        const auto again = orrery::serving::parse_engine(orrery::fuzz::own_node(text));
        orrery::fuzz::hold(again && orrery::serving::to_yaml(*again) == text,
                           "an engine is read back equal");
      });
}
