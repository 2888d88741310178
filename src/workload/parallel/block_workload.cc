// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/block_workload.h"

#include <utility>

#include "workload/parallel/chunk_templates.h"
#include "workload/parallel/passes.h"
#include "workload/plan/model_parts.h"

namespace orrery::parallel {
namespace {

class Blocks {
 public:
  explicit Blocks(const Draft& draft) : draft_(draft) {
    result_.workload = plan::step_workload(draft.layout);
    result_.workload.host_dispatch = draft.host_dispatch;
    result_.workload.programs.resize(1);
    for (graph::Role& role : result_.workload.roles) {
      role.program = 0;
    }
  }

  BlockWorkload run() {
    for (plan::BlockKind kind = 0; kind < draft_.steps.size(); ++kind) {
      auto& passes = result_.templates.emplace_back();
      for (std::size_t i = 0; i < kBlockRuns.size(); ++i) {
        const bool layer = kind >= plan::kFirstLayerBlock;
        for (std::size_t pass = 0; pass < kBlockPasses; ++pass) {
          passes[pass][i] = layer || i == 0 ? append(kind, static_cast<BlockPass>(pass),
                                                     layer ? kBlockRuns[i] : 1)
                                            : passes[pass][0];
        }
      }
    }
    return std::move(result_);
  }

 private:
  int append(plan::BlockKind kind, BlockPass pass, int length) {
    ChunkDraft chunk;
    chunk.blocks.assign(static_cast<std::size_t>(length),
                        {.kind = kind, .recomputes = pass == BlockPass::backward});
    std::vector<graph::Template>& templates = result_.workload.programs.front().templates;
    templates.push_back(
        pass == BlockPass::forward
            ? forward_template(draft_, {}, chunk, "forward", When::always)
            : backward_template(draft_, {}, chunk, BackwardPart::whole, "backward", When::always));
    return static_cast<int>(templates.size()) - 1;
  }

  const Draft& draft_;
  BlockWorkload result_;
};

}  // namespace

Result<BlockWorkload> lower_blocks(const zoo::Model& model, const plan::Plan& plan) {
  auto parts = plan::split_model(model, plan);
  if (!parts) {
    return fail(std::move(parts.error()));
  }
  const Context context{.model = model, .plan = plan, .parts = std::move(*parts)};
  Draft draft;
  for (auto* pass :
       {passes::pipeline, passes::tensor, passes::expert, passes::context, passes::recompute}) {
    pass(draft, context);
  }
  return Blocks(draft).run();
}

}  // namespace orrery::parallel
