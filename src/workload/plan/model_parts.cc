// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/model_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/collect.h"
#include "base/reader.h"
#include "base/split.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/schedule.h"
#include "workload/plan/unquantized.h"

namespace orrery::plan {
namespace {

Error stage_layers_mistake(const Plan& plan, std::string expected) {
  return Error(Mistake{{}, "stage_layers", plan.stage_layers, std::move(expected)});
}

Result<std::vector<std::int64_t>> given_counts(const zoo::Model& model, const Plan& plan,
                                               std::int64_t parts) {
  auto counts = stated_layers(plan);
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
  return or_mistakes(std::move(*counts), std::move(error));
}

/// Embedding, head and every depth of multi-token prediction count as a layer, as Megatron-LM does
/// with account-for-embedding-in-pipeline-split; what does not divide goes to the first parts.
Result<std::vector<std::int64_t>> balanced_counts(const zoo::Model& model, std::int64_t parts) {
  const std::int64_t tail = parts > 1 ? 1 + model.mtp : 0;
  const std::int64_t all = model.layers + (parts > 1 ? 1 : 0) + tail;
  if (all < parts) {
    return fail(
        Error(Mistake{{},
                      "stage_layers",
                      "auto",
                      fmt::format("at most {} stages x chunks for {} layers", all, model.layers)}));
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), all / parts);
  std::fill_n(counts.begin(), all % parts, all / parts + 1);
  if (parts > 1) {
    counts.front() -= 1;
    counts.back() -= tail;
  }
  // A last part smaller than its tail takes layers from the parts before it.
  for (std::size_t part = counts.size() - 1; part > 0 && counts[part] < 0; --part) {
    counts[part - 1] += counts[part];
    counts[part] = 0;
  }
  return counts;
}

Result<std::vector<std::int64_t>> even_counts(const zoo::Model& model, const Plan& plan,
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

Result<std::vector<std::vector<std::int64_t>>> split_layers(const zoo::Model& model,
                                                            const Plan& plan) {
  const PipelineShape shape{plan.schedule, plan.pp, chunks_of(plan), 1};
  const std::int64_t parts = part_count(shape);
  const auto counts = plan.stage_layers.empty()     ? even_counts(model, plan, parts)
                      : plan.stage_layers == "auto" ? balanced_counts(model, parts)
                                                    : given_counts(model, plan, parts);
  if (!counts) {
    return fail(counts.error());
  }
  std::vector<std::vector<std::int64_t>> layers(static_cast<std::size_t>(shape.stages));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    layers[static_cast<std::size_t>(stage)].reserve(static_cast<std::size_t>(shape.chunks));
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      layers[static_cast<std::size_t>(stage)].push_back(
          (*counts)[static_cast<std::size_t>(part_of(shape, stage, chunk))]);
    }
  }
  return layers;
}

Result<std::vector<std::vector<ModelPart>>> split_model(const zoo::Model& model, const Plan& plan) {
  const auto layers = split_layers(model, plan);
  if (!layers) {
    return fail(layers.error());
  }
  const PipelineShape shape{plan.schedule, plan.pp, chunks_of(plan), 1};
  const std::int64_t last = part_count(shape) - 1;
  std::vector<std::int64_t> count(static_cast<std::size_t>(last) + 1);
  std::vector<std::vector<ModelPart>> parts(layers->size());
  const auto each = [&](const auto& visit) {
    for (std::size_t stage = 0; stage < parts.size(); ++stage) {
      for (std::size_t chunk = 0; chunk < (*layers)[stage].size(); ++chunk) {
        visit(stage, chunk,
              part_of(shape, static_cast<std::int64_t>(stage), static_cast<std::int64_t>(chunk)));
      }
    }
  };
  each([&](std::size_t stage, std::size_t chunk, std::int64_t part) {
    count[static_cast<std::size_t>(part)] = (*layers)[stage][chunk];
  });
  std::vector<std::int64_t> first(count.size());
  std::exclusive_scan(count.begin(), count.end(), first.begin(), std::int64_t{0});
  each([&](std::size_t stage, std::size_t, std::int64_t part) {
    parts[stage].push_back({.embedding = part == 0,
                            .head = part == last,
                            .first_layer = first[static_cast<std::size_t>(part)],
                            .layers = count[static_cast<std::size_t>(part)]});
  });
  return parts;
}

BlockKind layer_block(const zoo::Model& model, const Plan& plan, std::int64_t layer) {
  const auto kind = static_cast<BlockKind>(zoo::layer_kind(model, layer));
  const bool apart = has_unquantized_layers(plan) && is_unquantized_layer(plan, model, layer);
  return kFirstLayerBlock + kind + (apart ? zoo::layer_kinds(model).size() : 0);
}

std::vector<BlockKind> blocks_of(const zoo::Model& model, const Plan& plan, const ModelPart& part) {
  std::vector<BlockKind> blocks;
  if (part.embedding) {
    blocks.push_back(kEmbeddingBlock);
  }
  for (std::int64_t i = 0; i < part.layers; ++i) {
    blocks.push_back(layer_block(model, plan, part.first_layer + i));
  }
  if (part.head) {
    blocks.push_back(kHeadBlock);
  }
  return blocks;
}

}  // namespace orrery::plan
