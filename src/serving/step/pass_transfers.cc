// SPDX-License-Identifier: Apache-2.0
/// Collectives of a pass, and sums that follow the tiles of their products.
#include <tuple>

#include "collective/gateway.h"
#include "collective/phase_messages.h"
#include "collective/tile_ring.h"
#include "collective/token_exchange.h"
#include "machine/compute/kernel_pieces.h"
#include "serving/step/pass_prices.h"

namespace orrery::step {

Result<void> PassPrices::check_links() const {
  if (!on_links_) {
    return {};
  }
  constexpr auto kAutomatic = collective::CollectiveAlgorithm::automatic;
  const bool gathers = options_.dispatch == plan::MoeDispatch::all_gather;
  const RankGroup none;
  for (const auto& [kind, group, algorithm] :
       {std::tuple(graph::CollectiveKind::all_reduce, &tensor_group_, options_.all_reduce),
        {graph::CollectiveKind::all_gather, gathers ? &data_group_ : &none, kAutomatic},
        {graph::CollectiveKind::all_to_all, gathers ? &none : &expert_group_, kAutomatic},
        {graph::CollectiveKind::all_reduce, &context_group_, kAutomatic}}) {
    if (auto known = on_links_->check(kind, *group, algorithm); !known) {
      return known;
    }
  }
  return {};
}

Bytes PassPrices::summed_bytes(std::int64_t tokens) const {
  return graph::bytes_of(wide_type(), tokens * model_.hidden);
}

void PassPrices::add_all_reduce(Part& part, std::int64_t tokens) const {
  if (options_.degrees.tp > 1) {
    const Bytes size = summed_bytes(tokens);
    part.add(options_.gateway == Gateway::none
                 ? over_tensor(graph::CollectiveKind::all_reduce, size)
                 : reduced_at_home(size),
             1);
  }
}

void PassPrices::add_sum(Part& part, const graph::Operator* product, std::int64_t tokens) const {
  Part alone;
  add_all_reduce(alone, tokens);
  if (product != nullptr && alone.time > Time(0)) {
    const Time before = kernel(*product).time;
    const Time together = overlapped(*product, tokens);
    if (together < before + alone.time) {
      return part.add(together - before, alone.kernels);
    }
  }
  part.add(alone.time, alone.kernels);
}

Time PassPrices::overlapped(graph::Operator product, std::int64_t tokens) const {
  using plan::TensorOverlap;
  const std::int64_t tp = options_.degrees.tp;
  const TensorOverlap how = options_.overlap_tensor;
  if (how == TensorOverlap::none || tp == 1 || product.kind != graph::OperatorKind::gemm) {
    return Time::max();
  }
  product.pieces = static_cast<std::int32_t>(tp);
  product.tracking = how == TensorOverlap::tracked       ? graph::Tracking::shared
                     : how == TensorOverlap::tracked_mca ? graph::Tracking::first
                                                         : graph::Tracking::none;
  const compute::KernelTime time = compute::time_in_pieces(product, machine_.device);
  const Bytes bytes = summed_bytes(tokens);
  collective::TileRing ring{.product = time.alone, .ranks = tp};
  ring.hop = over_tensor(graph::CollectiveKind::send_recv, bytes / tp);
  if (how == TensorOverlap::cu_split && time.alone > Time(0)) {
    ring.slowed = time.beside_collective / time.alone;
  }
  return collective::overlapped_time(ring) +
         moved(graph::CollectiveKind::all_gather, bytes, tensor_group_, options_.all_reduce);
}

Time PassPrices::reduced_at_home(Bytes size) const {
  const topology::NetworkDimension& way = machine_.network.front();
  const collective::Gateways home{
      .devices = options_.degrees.tp, .bandwidth = way.bandwidth, .path = way.latency};
  const auto named = value_of<collective::GatewayAlgorithm>(name_of(options_.gateway));
  return collective::gateway_all_reduce(named ? *named : collective::fastest_all_reduce(size, home),
                                        size, home);
}

void PassPrices::add_exchange(Part& part, std::int64_t tokens) const {
  if (options_.degrees.dp == 1) {
    return;
  }
  if (options_.dispatch == plan::MoeDispatch::all_gather) {
    const Bytes all = Bytes(2) * tokens * options_.degrees.dp * model_.hidden;
    for (const auto kind :
         {graph::CollectiveKind::all_gather, graph::CollectiveKind::reduce_scatter}) {
      part.add(moved(kind, all, data_group_), 1);
    }
    return;
  }
  const std::int64_t tp = options_.degrees.tp;
  const std::int64_t rows = (tokens + tp - 1) / tp * model_.top_k;
  for (const graph::DataType type : {options_.precision.activations, graph::DataType::bf16}) {
    const Bytes size = graph::bytes_of(type, rows * model_.hidden);
    part.add(options_.dispatch == plan::MoeDispatch::hierarchical
                 ? exchanged(size)
                 : moved(graph::CollectiveKind::all_to_all, size, expert_group_),
             1);
  }
}

Time PassPrices::moved(graph::CollectiveKind kind, Bytes size, const RankGroup& group,
                       collective::CollectiveAlgorithm algorithm) const {
  return on_links_ ? on_links_->time(kind, size, group, algorithm)
                   : collective::collective_time(kind, size, group.extents, algorithm, machine_);
}

Time PassPrices::over_tensor(graph::CollectiveKind kind, Bytes size) const {
  return moved(kind, size, tensor_group_,
               kind == graph::CollectiveKind::all_reduce
                   ? options_.all_reduce
                   : collective::CollectiveAlgorithm::automatic);
}

Time PassPrices::exchanged(Bytes size) const {
  constexpr auto kAutomatic = collective::CollectiveAlgorithm::automatic;
  if (on_links_) {
    return on_links_->time(graph::CollectiveKind::all_to_all, size, expert_group_, kAutomatic,
                           zoo::token_route(model_));
  }
  return collective::total_time(
      collective::plan_token_exchange(collective::plan_collective, size, zoo::token_route(model_),
                                      expert_group_.extents, kAutomatic, machine_));
}

Time PassPrices::hop(std::int64_t tokens) const {
  return moved(graph::CollectiveKind::send_recv, Bytes(2) * tokens * model_.hidden, stage_group_);
}

}  // namespace orrery::step
