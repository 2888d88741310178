// SPDX-License-Identifier: Apache-2.0
/// Attention costs this where all heads of queries share one head of keys: latent, compressed, an
/// indexer's.
#include <cmath>

#include "base/remembered.h"
#include "serving/step/attention_cost.h"

namespace orrery::step {

double shared_key_bytes(const zoo::Model& model, graph::DataType type) {
  constexpr std::int64_t kBlock = 64;  // elements of a scale of a byte, in groups of 8 bytes
  const std::int64_t plain = model.head_dim - model.compressed.rotary;
  if (graph::bits_of(type) >= 16) {
    return static_cast<double>(graph::bytes_of(type, model.head_dim).value());
  }
  const std::int64_t scales = ((plain + kBlock - 1) / kBlock + 7) / 8 * 8;
  return static_cast<double>((graph::bytes_of(type, plain) +
                              graph::bytes_of(graph::DataType::bf16, model.compressed.rotary))
                                 .value() +
                             scales);
}

double index_key_bytes(std::int64_t dim) {
  constexpr double kScale = 4.0 / 128;  // of a scale of 4 bytes a key of 128 fp8 elements
  return static_cast<double>(dim) * (1 + kScale);
}

Timed AttentionCost::attend_absorbed(const AttentionKind& kind, std::int64_t rows, double pairs,
                                     double keys) {
  const std::int64_t rank = model_.latent.key_value_rank;
  const std::int64_t rotary = model_.latent.rotary;
  const auto gemm = [&](std::int64_t n, std::int64_t k) {
    graph::Operator op{.name = {},
                       .kind = graph::OperatorKind::gemm,
                       .gemm = {.batch = heads_, .m = rows, .n = n, .k = k}};
    return prices_.kernel(op);
  };
  const Timed& around = remembered(
      absorbed_, rows, [&] { return gemm(rank, kind.head_dim - rotary) + gemm(kind.value, rank); });
  graph::Operator core{.name = {}, .kind = graph::OperatorKind::attention, .gemm = {}};
  const auto per_key = static_cast<double>(heads_ * (2 * rank + rotary));
  const double latent_bytes = static_cast<double>(rank + rotary) *
                              static_cast<double>(graph::bits_of(options_.precision.kv)) / 8;
  core.flops = Flops(2 * per_key * pairs);
  core.bytes = Bytes(std::llround(latent_bytes * keys + 2 * per_key * static_cast<double>(rows)));
  return around + prices_.kernel(core);
}

Timed AttentionCost::choose_keys(double pairs, double keys) const {
  graph::Operator scores{.name = {}, .kind = graph::OperatorKind::attention, .gemm = {}};
  const auto width = static_cast<double>(index_.dim);
  // In fp8, at twice the rate of attention's own products.
  scores.flops = Flops(static_cast<double>(index_.heads) * width * pairs);
  scores.bytes = Bytes(std::llround(index_key_bytes(index_.dim) * keys + 4 * pairs));
  return prices_.kernel(scores) + prices_.elementwise(Bytes(std::llround(4 * pairs)));
}

Timed AttentionCost::attend_shared_head(double rows, double pairs, double keys) const {
  const auto width = static_cast<double>(2 * model_.head_dim * heads_);
  graph::Operator core{.name = {}, .kind = graph::OperatorKind::attention, .gemm = {}};
  core.flops = Flops(2 * width * pairs);
  core.bytes = Bytes(
      std::llround(shared_key_bytes(model_, options_.precision.kv) * keys + 2 * width * rows));
  return prices_.kernel(core);
}

}  // namespace orrery::step
