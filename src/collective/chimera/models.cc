// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/models.h"

#include <cmath>

#include "machine/compute/systolic.h"

namespace orrery::chimera {
namespace {

using layout::Pair;

constexpr compute::SystolicArray kArray{.rows = 256, .cols = 256};
constexpr std::int64_t kElement = 4;  // bytes of fp32

/// Returns the cycles of products of (m, n, k) each.
double cycles_of(const std::vector<graph::GemmShape>& products) {
  double sum = 0;
  for (const graph::GemmShape& product : products) {
    sum += compute::systolic_cost({.shape = product}, kArray, {}).cycles;
  }
  return sum;
}

graph::GemmShape product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

/// Products of one rank alone.
struct Work {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
};

Work attention(std::int64_t s, std::int64_t h) {
  const auto qkv = product(s, 3 * h, h);
  const auto scores = product(s, s, h);
  const auto values = product(s, h, s);
  const auto projection = product(s, h, h);
  return {cycles_of({qkv, scores, values, projection}),
          cycles_of({projection, values, scores, scores, values, qkv}),
          cycles_of({projection, product(s, h, 3 * h)})};
}

Work mlp(std::int64_t s, std::int64_t h) {
  const double both = cycles_of({product(s, 4 * h, h), product(s, h, 4 * h)});
  return {both, both, both};
}

Sublayer shared_out(const Work& work, double share) {
  const auto cycles = [&](double all) {
    return static_cast<flit::Cycle>(std::llround(all * share));
  };
  Sublayer sublayer;
  sublayer.forward = cycles(work.forward);
  sublayer.input_gradient = cycles(work.input_gradient);
  sublayer.weight_gradient = cycles(work.weight_gradient);
  return sublayer;
}

class BlockOf {
 public:
  BlockOf(const LayerStudy& study, bool fused)
      : study_(study),
        fused_(fused),
        hidden_(shape_of(study.model).hidden),
        m_(kElement * study.tokens * hidden_) {}

  Sublayer dense(const Work& work) const {
    Sublayer made = shared_out(work, static_cast<double>(study_.dp) / study_.ranks);
    const Operation sum = fused_ ? Operation::reduce_scatter : Operation::all_reduce;
    const Operation gradient = fused_ ? Operation::all_gather : Operation::all_reduce;
    made.before = {{Operation::all_gather, true, m_}};
    made.after = {{sum, true, m_}};
    made.backward_before = {{gradient, true, m_}};
    made.backward_after = {{Operation::reduce_scatter, true, m_}};
    return made;
  }

  Sublayer experts() const {
    Sublayer made = shared_out(mlp(study_.tokens, hidden_), 2.0 * study_.dp / study_.ranks);
    const bool inside = study_.pair == Pair::tp_ep && !fused_;
    const Communication exchange{Operation::all_to_all, inside,
                                 m_ * study_.top_k * (inside ? 1 : study_.dp)};
    made.before = {exchange};
    made.after = {exchange};
    made.backward_before = {exchange};
    made.backward_after = {exchange};
    if (study_.pair == Pair::sp_ep && !fused_) {
      made.before.insert(made.before.begin(), {Operation::all_gather, true, m_});
      made.backward_after.push_back({Operation::reduce_scatter, true, m_});
    }
    return made;
  }

  std::vector<Sublayer> make() const {
    const Work heads = attention(study_.tokens, hidden_);
    const Work plain = mlp(study_.tokens, hidden_);
    std::vector<Sublayer> block{dense(heads), dense(plain)};
    if (shape_of(study_.model).has_experts) {
      block.push_back(dense(heads));
      block.push_back(experts());
    }
    return block;
  }

 private:
  const LayerStudy& study_;
  bool fused_;
  std::int64_t hidden_;
  Bytes m_;
};

}  // namespace

ModelShape shape_of(ModelName model) {
  switch (model) {
    case ModelName::gpt2_medium:
      return {1024, 24, false};
    case ModelName::gpt2_xl:
      return {1600, 48, false};
    case ModelName::deepspeed_moe_350m:
      return {1024, 24, true};
    case ModelName::deepspeed_moe_1_3b:
      return {2048, 24, true};
  }
  return {};
}

std::vector<Sublayer> block_of(const LayerStudy& study, bool fused) {
  return BlockOf(study, fused).make();
}

}  // namespace orrery::chimera
