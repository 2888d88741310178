// SPDX-License-Identifier: Apache-2.0
/// Says which part of the model every chunk of every pipeline stage holds, and of which blocks it
/// is made: embedding, layers, head.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// A sort of block of operators: embedding, head, then the model's kinds of layers, then the same
/// kinds unquantised where a plan has such layers.
using BlockKind = std::size_t;
inline constexpr BlockKind kEmbeddingBlock = 0;
inline constexpr BlockKind kHeadBlock = 1;
inline constexpr BlockKind kFirstLayerBlock = 2;

/// A ModelPart is what one chunk of one stage holds: consecutive layers, perhaps the ends of the
/// model.
struct ModelPart {
  bool embedding = false;
  bool head = false;
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
};
/// Returns the parts of every stage and chunk: result[stage][chunk].
Result<std::vector<std::vector<ModelPart>>> split_model(const zoo::Model& model, const Plan& plan);

/// Returns the block of one layer: its kind's, and of layers that stay unquantised (unquantized.h)
/// as many blocks later as the model has kinds.
BlockKind layer_block(const zoo::Model& model, const Plan& plan, std::int64_t layer);

/// Returns the blocks of a chunk in model order.
std::vector<BlockKind> blocks_of(const zoo::Model& model, const Plan& plan, const ModelPart& part);

/// Returns the layers of every stage and chunk: result[stage][chunk]. Even split by default; with
/// stage_layers as given. Chunk c of stage s holds model layers in the order of c * pp + s.
Result<std::vector<std::vector<std::int64_t>>> split_layers(const zoo::Model& model,
                                                            const Plan& plan);

}  // namespace orrery::plan
