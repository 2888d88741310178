// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/reader.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/schedule.h"

namespace orrery {
namespace {

Error stage_layers_mistake(const Plan& plan, std::string expected) {
  return Error(Mistake{{}, "stage_layers", plan.stage_layers, std::move(expected)});
}

/// "12,13" -> {12, 13}; whole numbers >= 0.
Result<std::vector<std::int64_t>> parse_counts(const Plan& plan) {
  std::vector<std::int64_t> counts;
  std::string_view rest = plan.stage_layers;
  while (true) {
    const std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    const auto count = parse_integer(item);
    if (!count || *count < 0) {
      return fail(stage_layers_mistake(plan, "whole numbers of layers such as '12,13,13,10'"));
    }
    counts.push_back(*count);
    if (comma == std::string_view::npos) {
      return counts;
    }
    rest.remove_prefix(comma + 1);
  }
}

Result<std::vector<std::int64_t>> given_counts(const Model& model, const Plan& plan,
                                               std::int64_t parts) {
  auto counts = parse_counts(plan);
  if (!counts) {
    return counts;
  }
  std::int64_t sum = 0;
  bool inner_empty = false;
  for (std::size_t i = 0; i < counts->size(); ++i) {
    const std::int64_t count = (*counts)[i];
    sum = count > model.layers ? model.layers + 1 : std::min(sum + count, model.layers + 1);
    inner_empty = inner_empty || (count == 0 && i != 0 && i + 1 != counts->size());
  }
  Error error;
  if (std::ssize(*counts) != parts) {
    error.add(stage_layers_mistake(
        plan, fmt::format("{} entries, one per stage and chunk (pp x chunks)", parts)));
  }
  if (sum != model.layers) {
    error.add(stage_layers_mistake(plan, fmt::format("a sum of {} layers", model.layers)));
  }
  if (inner_empty) {
    error.add(stage_layers_mistake(plan, "no 0 but first or last (embedding or head alone)"));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return counts;
}

Result<std::vector<std::int64_t>> even_counts(const Model& model, const Plan& plan,
                                              std::int64_t parts) {
  if (model.layers % parts != 0) {
    return fail(Error(
        Mistake{{},
                "pp",
                std::to_string(plan.pp),
                fmt::format("stages x chunks that divide {} layers ({} do not), or stage_layers",
                            model.layers, parts)}));
  }
  return std::vector<std::int64_t>(static_cast<std::size_t>(parts), model.layers / parts);
}

}  // namespace

Result<std::vector<std::vector<std::int64_t>>> split_layers(const Model& model, const Plan& plan) {
  const PipelineShape shape{plan.schedule, plan.pp,
                            plan.schedule == Schedule::interleaved ? plan.chunks : 1, 1};
  const std::int64_t parts = shape.stages * shape.chunks;
  const auto counts = plan.stage_layers.empty() ? even_counts(model, plan, parts)
                                                : given_counts(model, plan, parts);
  if (!counts) {
    return fail(counts.error());
  }
  std::vector<std::vector<std::int64_t>> layers(static_cast<std::size_t>(shape.stages));
  for (std::size_t part = 0; part < counts->size(); ++part) {
    layers[part % layers.size()].push_back((*counts)[part]);
  }
  return layers;
}

Result<std::vector<std::vector<ModelPart>>> split_model(const Model& model, const Plan& plan) {
  const auto layers = split_layers(model, plan);
  if (!layers) {
    return fail(layers.error());
  }
  const std::size_t stages = layers->size();
  const std::size_t chunks = layers->front().size();
  std::vector<std::vector<ModelPart>> parts(stages, std::vector<ModelPart>(chunks));
  std::int64_t next = 0;
  for (std::size_t part = 0; part < stages * chunks; ++part) {
    const std::int64_t count = (*layers)[part % stages][part / stages];
    parts[part % stages][part / stages] = {.embedding = part == 0,
                                           .head = part + 1 == stages * chunks,
                                           .first_layer = next,
                                           .layers = count};
    next += count;
  }
  return parts;
}

std::vector<BlockKind> blocks_of(const Model& model, const ModelPart& part) {
  std::vector<BlockKind> blocks;
  if (part.embedding) {
    blocks.push_back(kEmbeddingBlock);
  }
  for (std::int64_t i = 0; i < part.layers; ++i) {
    blocks.push_back(kFirstLayerBlock +
                     static_cast<BlockKind>(layer_kind(model, part.first_layer + i)));
  }
  if (part.head) {
    blocks.push_back(kHeadBlock);
  }
  return blocks;
}

}  // namespace orrery
