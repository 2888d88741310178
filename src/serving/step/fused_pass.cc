// SPDX-License-Identifier: Apache-2.0
/// This part says what `fuse` makes of a pass: the residual stream's uses and their prices.
#include <algorithm>
#include <utility>

#include "serving/step/pass_operators.h"
#include "serving/step/step_cost.h"
#include "workload/lower/choose.h"
#include "workload/plan/shard.h"

namespace orrery::step {

bool StepCost::exchanges_shards() const {
  return options_.degrees.dp > 1 && options_.dispatch != plan::MoeDispatch::all_gather &&
         model_.expert.shared_ffn == 0;
}

StreamPrices StepCost::stream_prices(std::int64_t tokens) const {
  const std::int64_t tp = options_.degrees.tp;
  const std::int64_t shard = (tokens + tp - 1) / tp;
  const Bytes shards = Bytes(2) * shard * tp * model_.hidden;
  Part sum;
  add_all_reduce(sum, tokens);
  return {.all_reduce = sum.time,
          .reduce_scatter = moved(graph::CollectiveKind::reduce_scatter, shards, tensor_group_),
          .all_gather = moved(graph::CollectiveKind::all_gather, shards, tensor_group_),
          .send_rows = hop(tokens),
          .send_shard = hop(shard)};
}

StepCost::PassLayer StepCost::layer_of(std::size_t kind, const plan::Plan& plan) const {
  zoo::ModelGraph layer =
      zoo::layer_graph(model_, plan::shape_options(model_, plan), static_cast<int>(kind));
  lower::Choice choice =
      lower::choose(layer.operators, layer.tensors, model_, plan, {.tensor = true}, 1);
  bool routes = false;
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    routes = routes || layer.operators[i].expert;
    if (routes) {  // the shared expert's part is summed with the routed ones'
      choice.operators[i].writes = {};
    }
  }
  return {std::move(layer.operators), std::move(choice)};
}

Time StepCost::norm_time(std::size_t kind, const plan::Plan& plan) const {
  Part part;
  for (const zoo::ModelOperator& op : layer_of(kind, plan).operators) {
    if (is_of_stream(op) && !is_left_out(model_, op)) {
      add_operator(part, op, plan);
    }
  }
  return part.time;
}

StreamUses StepCost::stream_uses(std::int64_t tokens) const {
  const std::int64_t tp = options_.degrees.tp;
  StreamUses uses{.tokens = tokens, .tp = tp, .hops = options_.degrees.pp - 1, .summed = 1};
  const plan::Plan whole = plan_for(tokens);
  const plan::Plan shard = plan_for((tokens + tp - 1) / tp);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const auto layers = kinds_[kind];
    const PassLayer layer = layer_of(kind, whole);
    const bool routes =
        std::ranges::any_of(layer.operators, [](const auto& op) { return op.expert; });
    const std::int64_t branches = std::ranges::count_if(
        layer.choice.operators, [](const auto& layouts) { return !layouts.writes.empty(); });
    const Time saved = norm_time(kind, whole) - norm_time(kind, shard);
    uses.norms += layers * std::max(saved, Time(0));
    const bool sharded = routes && exchanges_shards();
    uses.summed += layers * (branches + (routes && !sharded ? 1 : 0));
    uses.sharded += sharded ? layers : 0;
    uses.readers += layers * (branches + (routes && !sharded ? 1 : 0));
    uses.senders += sharded ? layers : 0;
  }
  return uses;
}

StreamChoice StepCost::stream(std::int64_t tokens) const {
  if (!options_.fuse || options_.degrees.tp == 1 || model_.streams > 1) {
    return {};
  }
  return choose_stream(stream_uses(tokens), stream_prices(tokens));
}

std::vector<FusedPlace> StepCost::fused_places(std::int64_t tokens) const {
  const Degrees& degrees = options_.degrees;
  std::vector<FusedPlace> places = stream(padded(tokens)).places;
  const auto refuse = [&](std::string pair, std::string reason) {
    FusedPlace& place = places.emplace_back();
    place.pair = std::move(pair);
    place.reason = std::move(reason);
  };
  if (degrees.tp > 1 && model_.streams > 1) {
    refuse("tp+sp", "between sum and reader its residual streams are mixed");
  }
  if (degrees.ep > 1 && degrees.dp == 1) {
    refuse("tp+ep", "with dp 1 every rank has all tokens: nothing is exchanged");
  } else if (degrees.ep > 1 && options_.dispatch == plan::MoeDispatch::all_gather) {
    refuse("tp+ep", "dispatch allgather: every rank of the experts reads all tokens");
  } else if (degrees.ep > 1 && !exchanges_shards()) {
    refuse("tp+ep", "the shared expert reads all tokens of the group");
  }
  if (degrees.ep > 1 && degrees.pp > 1) {
    refuse("pp+ep", "between stages and experts attention reads the tensor");
  }
  if (degrees.cp > 1) {
    refuse("cp", "the output projection, a product, reads what attention sums");
  }
  return places;
}

}  // namespace orrery::step
