// SPDX-License-Identifier: Apache-2.0
/// Model + plan -> Workload, by named passes (passes.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/workload.h"
#include "workload/parallel/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

struct LowerOptions {
  std::set<std::string> skip{};  ///< names of passes to leave out
  /// Called after each pass with its name and the workload it made.
  std::function<void(const std::string& pass, const Workload&)> observe{};
};

/// Lowers a checked plan. Runs every pass of kPasses in order and verify() after the last and, with
/// observe set, after each. Unknown names in `skip` are mistakes with "did you mean".
Result<Workload> lower(const Model& model, const Plan& plan, const LowerOptions& options = {});

struct PassName {
  std::string name;
  std::string meaning;
};
std::vector<PassName> lowering_passes();

/// A sort of block of operators: embedding, head, then the model's kinds of layers.
using BlockKind = std::size_t;
inline constexpr BlockKind kEmbeddingBlock = 0;
inline constexpr BlockKind kHeadBlock = 1;
inline constexpr BlockKind kFirstLayerBlock = 2;

/// What one chunk of one stage holds: consecutive layers, perhaps the ends of the model.
struct ModelPart {
  bool embedding = false;
  bool head = false;
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
};
/// Parts of every stage and chunk: result[stage][chunk].
Result<std::vector<std::vector<ModelPart>>> split_model(const Model& model, const Plan& plan);

/// The blocks of a chunk in model order.
std::vector<BlockKind> blocks_of(const Model& model, const ModelPart& part);

/// Layers of every stage and chunk: result[stage][chunk]. Even split by default; with stage_layers
/// as given. Chunk c of stage s holds model layers in the order of c * pp + s.
Result<std::vector<std::vector<std::int64_t>>> split_layers(const Model& model, const Plan& plan);

}  // namespace orrery
