// SPDX-License-Identifier: Apache-2.0
/// Any JSON as a Hugging Face config.json: what is accepted has a parameter count that adds up.
#include "tests/fuzz/fuzz.h"
#include "workload/zoo/model.h"

ORRERY_FUZZ(model) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::json, [](const orrery::ConfigNode& node) {
        const auto model = orrery::zoo::parse_model(node, "input");
        if (!model) {
          orrery::fuzz::hold_error(model.error());
          return;
        }
        const orrery::zoo::ParameterCount count = orrery::zoo::count_parameters(*model);
        orrery::fuzz::hold(count.total == count.layers + count.embedding + count.position +
                                              count.final_norm + count.head + count.mtp,
                           "the parameters of the parts add up");
        orrery::fuzz::hold(count.total < orrery::zoo::kMaxParameters,
                           "counts stay below the limit");
        orrery::fuzz::hold(count.active > 0 && count.active <= count.total,
                           "active parameters are some of all");
        const orrery::zoo::ShapeOptions options{.microbatch = 1, .sequence = 128};
        std::int64_t operators = 0;
        const auto add = [&](const std::vector<orrery::zoo::ModelOperator>& block,
                             std::int64_t times) {
          for (const orrery::zoo::ModelOperator& op : block) {
            operators += op.parameters * times;
          }
        };
        std::vector<std::int64_t> layers(orrery::zoo::layer_kinds(*model).size(), 0);
        for (std::int64_t i = 0; i < model->layers; ++i) {
          ++layers.at(static_cast<std::size_t>(orrery::zoo::layer_kind(*model, i)));
        }
        for (std::size_t kind = 0; kind < layers.size(); ++kind) {
          add(orrery::zoo::layer_operators(*model, options, static_cast<int>(kind)), layers[kind]);
        }
        add(orrery::zoo::embedding_operators(*model, options), 1);
        add(orrery::zoo::head_operators(*model, options), 1);
        orrery::fuzz::hold(operators == count.total, "operators hold every parameter once");
      });
}
