// SPDX-License-Identifier: Apache-2.0
/// Any JSON as a Hugging Face config.json: what is accepted has a parameter count that adds up.
#include "tests/fuzz/fuzz.h"
#include "workload/zoo/model.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::json, [](const orrery::ConfigNode& node) {
        const auto model = orrery::parse_model(node, "input");
        if (!model) {
          orrery::fuzz::hold_error(model.error());
          return;
        }
        const orrery::ParameterCount count = orrery::count_parameters(*model);
        orrery::fuzz::hold(count.total == model->layers * count.per_layer + count.embedding +
                                              count.position + count.final_norm + count.head,
                           "the parameters of the parts add up");
        orrery::fuzz::hold(
            !orrery::layer_operators(*model, {.microbatch = 1, .sequence = 128}).empty(),
            "a layer has operators");
      });
}
